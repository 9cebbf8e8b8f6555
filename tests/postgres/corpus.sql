-- topic: integers
SELECT id, small / 2, id / 3, big / 7, id / -2 FROM t;
SELECT id, id % 3, -id % 3, id % -3, mod(id, 4) FROM t;
SELECT id, small + small, small * id, big - id FROM t;
SELECT id, id / 2 * 2 AS even, (id + 1) / 2.0 AS half FROM t;
SELECT 7 / 2 AS a, -7 / 2 AS b, 7 / -2 AS c, -7 % 2 AS d FROM t WHERE id = 1;
SELECT sum(id) / count(*) AS mean, sum(big) / count(*) AS wide FROM t;
SELECT id & 6 AS a, id | 1 AS o, id # 5 AS x, ~id AS n, id << 2 AS l, id >> 1 AS r FROM t;
SELECT id, 2 ^ 3 ^ 2 AS p, power(id, 2) AS sq, -2 ^ 2 AS neg FROM t;
SELECT abs(-id), sign(id - 4), abs(price), sign(price) FROM t;
SELECT sqrt(id) AS r, cbrt(27) AS c, ln(ratio) AS l, log(ratio) AS l10, exp(1.5::float8) AS e FROM t WHERE ratio > 0;

-- topic: numeric
SELECT id, price + 1, price * 1.175, price - 0.005, -price FROM t;
SELECT id, price / 3 FROM t;
SELECT id, price / 7.5 AS a, 1.0 / 3 AS b, 100 / price AS c FROM t WHERE price <> 0;
SELECT id, 1 / price AS inverse, price / 100000 AS tiny, 123456789.12 / 3 AS large FROM t WHERE price <> 0;
SELECT id, cost / qty AS each, cost * cost * cost AS cubed FROM u WHERE qty <> 0;
SELECT id, price % 3, mod(price, 0.7) FROM t;
SELECT id, round(price), round(price, 1), round(price, -1), round(id, -1), round(price / 3, 4) FROM t;
SELECT id, trunc(price), trunc(price, 1), trunc(-price, 1), ceil(price), floor(price), ceil(-price), floor(-price) FROM t;
SELECT id, round(2.5) AS a, round(3.5) AS b, round(-2.5) AS c, round(0.125, 2) AS d FROM t WHERE id = 1;
SELECT 1e3 AS a, 1.5e-3 AS b, 12345678901234567890 AS c, .5 AS d FROM t WHERE id = 1;
SELECT id, price::text, (price * 2)::text, (price + 1.5)::text FROM t;
SELECT sum(price) AS s, min(price) AS lo, max(price) AS hi, count(price) AS n FROM t;
SELECT id, price > 10 AS more, price = 10 AS same, price BETWEEN 1 AND 20 AS within FROM t;
SELECT id, coalesce(price, 0) AS p, coalesce(price, id) AS q, greatest(price, 5, NULL) AS g, least(price, id) AS l FROM t;
SELECT CASE WHEN id > 3 THEN price ELSE 0 END AS a, CASE id WHEN 1 THEN 1 WHEN 2 THEN 2.5 END AS b FROM t;

-- topic: double precision
SELECT id, ratio * 2, ratio + id, ratio / 3, ratio - price FROM t;
SELECT id, round(ratio), round(2.5::float8) AS a, round(3.5::float8) AS b, round(-2.5::float8) AS c, round(-0.5::float8) AS d FROM t;
SELECT id, trunc(ratio), ceil(ratio), floor(ratio), abs(ratio), sign(ratio) FROM t;
SELECT id, round(ratio::numeric, 2) AS a, ratio::numeric(12, 3) AS b, round(ratio::numeric, 0) AS c FROM t WHERE ratio < 1e6;
SELECT round(1.005::float8::numeric, 2) AS a, round(2.675::float8::numeric, 2) AS b, (0.1::float8 + 0.2::float8)::numeric(20, 2) AS c FROM t WHERE id = 1;
SELECT id, ratio::int AS a, 2.5::float8::int AS b, 3.5::float8::int AS c, -2.5::float8::int AS d FROM t WHERE ratio < 1e6;
SELECT avg(ratio) AS a, sum(ratio) AS s, min(ratio) AS lo, max(ratio) AS hi FROM t;
SELECT id FROM t WHERE ratio > 1 OR ratio = price;

-- topic: averages
SELECT avg(id) FROM t;
SELECT avg(small), avg(big), avg(price) FROM t;
SELECT ok, avg(price), avg(id), avg(big) FROM t GROUP BY ok;
SELECT name, avg(price), sum(price) / count(price) AS by_hand FROM t GROUP BY name;
SELECT round(avg(price), 2) AS r, round(avg(id), 3) AS i FROM t;
SELECT avg(price) FROM t WHERE id > 100;
SELECT avg(cost), avg(qty) FROM u;
SELECT avg(DISTINCT id % 4) AS d, avg(price) FILTER (WHERE id > 2) AS f FROM t;
SELECT avg(id - 4.5) AS small, avg(price - 10) AS shifted FROM t;
SELECT avg(big * 1000000) AS large FROM t;

-- topic: casts
SELECT id, price::int AS a, (-price)::int AS b, 2.5::int AS c, -2.5::int AS d, 0.5::int AS e FROM t;
SELECT code::int AS n, code::bigint + 1 AS m, code::numeric(10, 2) AS d FROM t WHERE code ~ '^\s*[+-]?\d+\s*$';
SELECT '42'::int AS a, '-7'::bigint AS b, '1.5'::numeric AS c, '2.25'::float8 AS d, ' 12 '::int AS e FROM t WHERE id = 1;
SELECT id::text, big::text, ok::text, day::text, at::text FROM t;
SELECT 'yes'::boolean AS a, 'off'::boolean AS b, 't'::bool AS c, '0'::bool AS d FROM t WHERE id = 1;
SELECT id, id::boolean AS b, ok::int AS i FROM t;
SELECT id, name::varchar(2) AS short, id::varchar AS shown, CAST(price AS varchar(3)) AS cut FROM t;
SELECT '2024-02-29'::date AS d, date '2024-1-5' AS e, '2024-01-05 10:30'::timestamp AS t, timestamp '2024-01-05 10:30:15.25' AS u FROM t WHERE id = 1;
SELECT at::date AS d, day::timestamp AS t, day::text || '!' AS s FROM t;
SELECT '2024-01-05 10:30:00+02'::timestamptz AS z, timestamptz '2024-07-01 00:00:00Z' AS y FROM t WHERE id = 1;
SELECT id, price::numeric(10, 1) AS one, price::numeric(6, 0) AS none, id::numeric AS n, id::numeric(8, 2) AS m FROM t;
SELECT id, small::bigint AS b, big::int AS i, id::float8 AS f, price::float8 AS p, id::real AS r FROM t WHERE big < 1000000;
SELECT CAST(NULL AS int) AS n, NULL AS nothing, 'text' AS t, NULL::date AS d FROM t WHERE id < 3;
SELECT id FROM t WHERE day = '2024-01-31' OR price > '10' OR id = '3';

-- topic: text
SELECT id, name || '-' || code AS joined, name || id AS mixed, 'x' || ok AS b, name || NULL AS n FROM t;
SELECT id, concat(name, '-', code, id, ok) AS c, concat_ws(',', name, code, id) AS w, concat(NULL, name) AS n FROM t;
SELECT id, lower(name) AS l, upper(name) AS u, length(name) AS n, char_length(code) AS c, octet_length(name) AS o, reverse(name) AS r FROM t;
SELECT id, left(name, 2) AS a, left(name, -2) AS b, right(name, 2) AS c, right(name, -2) AS d, left(name, 0) AS e FROM t;
SELECT id, left(name, id - 4) AS a, right(name, id - 4) AS b FROM t;
SELECT id, substring(name FROM 2 FOR 3) AS a, substring(name, 2) AS b, substr(name, -1, 4) AS c, substring(name FROM 0 FOR 2) AS d, substring(name FOR 2) AS e FROM t;
SELECT id, substring(name, id - 3, 3) AS a, substring(name, id - 3) AS b, substring(name, 1, small) AS c FROM t WHERE small IS NULL OR small >= 0;
SELECT id, position('a' IN name) AS p, strpos(name, 'b') AS s, position('' IN name) AS e FROM t;
SELECT id, trim(name) AS a, trim(BOTH 'aA ' FROM name) AS b, ltrim(name) AS c, rtrim(name, 'e ') AS d, btrim(name, ' a') AS e, trim(LEADING FROM name) AS f, trim(TRAILING 'e' FROM name) AS g FROM t;
SELECT id, lpad(code, 5, '0') AS a, rpad(name, 6, '.-') AS b, lpad(name, 2) AS c, rpad(name, 8) AS d FROM t;
SELECT id, repeat(code, 2) AS a, replace(name, 'a', 'oo') AS b, translate(name, 'abc', 'xy') AS c, split_part(name, 'a', 1) AS d, split_part(name, 'a', -1) AS e, split_part(name, ',', 2) AS f FROM t;
SELECT id, overlay(name PLACING 'XX' FROM 2) AS a, overlay(name PLACING 'Y' FROM 2 FOR 2) AS b, overlay(name PLACING '' FROM 1 FOR 1) AS c FROM t;
SELECT id, starts_with(name, 'A') AS a, name ^@ 'b' AS b, md5(name) AS m FROM t;
SELECT 'it''s' AS a, 'back\slash' AS b, E'tab\there' AS c, $$dollar's$$ AS d, E'it\'s' AS e, 'a%_b' AS f FROM t WHERE id = 1;
SELECT id FROM t WHERE name = 'it''s' OR code = 'a\b';
SELECT id, name < 'b' AS before, name >= 'B' AS after, greatest(name, 'm') AS g, least(name, code) AS l FROM t;
SELECT min(name) AS a, max(name) AS b, min(code) AS c FROM t;
SELECT id, nullif(name, 'beta') AS a, coalesce(name, code, '?') AS b, nullif(id, 2) AS c FROM t;
SELECT id, string_to_array(code, ',') AS parts, array_to_string(tags, '+') AS joined, array_to_string(nums, ',', '*') AS n FROM t;

-- topic: patterns
SELECT id FROM t WHERE name LIKE 'A%';
SELECT id FROM t WHERE name ILIKE 'a%' OR name ILIKE '%BETA%';
SELECT id FROM t WHERE name NOT LIKE '%a%';
SELECT id FROM t WHERE code LIKE '10\%' OR code LIKE 'a\\b' OR code LIKE '1\0%';
SELECT id FROM t WHERE code LIKE '10!%' ESCAPE '!';
SELECT id FROM t WHERE name LIKE ANY (ARRAY['A%', '%a']);
SELECT id, name ~ '^[ab]' AS a, name ~* '^[ab]' AS b, name !~ 'a$' AS c, name !~* 'A$' AS d FROM t;
SELECT id FROM t WHERE code ~ '^\d+$';
SELECT id FROM t WHERE name ~ '^(alpha|beta)$';
SELECT id FROM t WHERE code ~ '[[:digit:]]{2,}' OR name ~ '[[:upper:]]';
SELECT id FROM t WHERE name ~ '\mbeta\M' OR name ~ 'it''s';
SELECT id FROM t WHERE name SIMILAR TO '(Al|be)%' OR code SIMILAR TO '[0-9]+';
SELECT id FROM t WHERE name ~~ 'b%' OR name !~~* '%A%';
SELECT id, regexp_replace(code, '[0-9]', '#') AS first, regexp_replace(code, '[0-9]+', '#', 'g') AS every FROM t;
SELECT id, regexp_replace(name, '([aeiou])', '<\1>', 'g') AS a, regexp_replace(name, 'A', '\&\&', 'i') AS b, regexp_replace(code, '\.', '', 'g') AS c FROM t;
SELECT id, substring(code FROM '[0-9]+') AS digits, substring(name FROM 'l(.)h') AS between FROM t;
SELECT id, regexp_like(name, '^B', 'i') AS r FROM t;
SELECT id FROM t WHERE name ~ E'line\nbreak' OR name ~ 'line.break';

-- topic: dates
SELECT id, day + 1 AS a, day - 1 AS b, day - date '2024-01-01' AS c, 3 + day AS d FROM t;
SELECT id, day + interval '1 month' AS a, day - interval '1 day' AS b, at + interval '1 month' AS c, at - interval '1 year 2 mons 3 days 04:05:06' AS d FROM t;
SELECT id, day + id * interval '1 day' AS a, at + interval '90 minutes' AS b, at + '2 hours'::interval AS c, at + interval '1.5 hours' AS d FROM t;
SELECT id, seen + interval '1 day' AS a, seen - interval '36 hours' AS b FROM t;
SELECT id, extract(year FROM day) AS y, extract(month FROM day) AS m, extract(day FROM at) AS d, extract(quarter FROM day) AS q FROM t;
SELECT id, extract(dow FROM day) AS dow, extract(isodow FROM day) AS iso, extract(doy FROM day) AS doy, extract(week FROM day) AS week, extract(isoyear FROM day) AS isoyear FROM t;
SELECT id, extract(hour FROM at) AS h, extract(minute FROM at) AS m, extract(second FROM at) AS s, extract(milliseconds FROM at) AS ms FROM t;
SELECT id, extract(epoch FROM at) AS a, extract(epoch FROM day) AS b, extract(epoch FROM seen) AS c FROM t;
SELECT id, extract(century FROM day) AS c, extract(decade FROM day) AS d, extract(millennium FROM day) AS m FROM t;
SELECT id, date_part('year', day) AS y, date_part('dow', at) AS d, date_part('hour', at) AS h FROM t;
SELECT id, date_trunc('month', at) AS m, date_trunc('week', at) AS w, date_trunc('hour', at) AS h, date_trunc('minute', at) AS i, date_trunc('day', at) AS d FROM t;
SELECT id, date_trunc('month', day) AS m, date_trunc('quarter', day) AS q, date_trunc('year', day) AS y, date_trunc('day', day) AS d FROM t;
SELECT id, date_trunc('month', seen) AS m, date_trunc('hour', seen) AS h, date_trunc('month', day)::date AS first FROM t;
SELECT id, extract(epoch FROM at - timestamp '2024-01-01') AS s, extract(day FROM at - timestamp '2024-01-01 12:00') AS d FROM t;
SELECT id, extract(epoch FROM seen - timestamptz '2024-01-01 00:00:00+00') AS s, at - day > interval '10 hours' AS late FROM t;
SELECT id FROM t WHERE at >= day + interval '12 hours';
SELECT id FROM t WHERE day BETWEEN '2024-01-01' AND date '2024-01-31' AND at < '2024-06-01';
SELECT id, to_char(day, 'YYYY-MM-DD') AS a, to_char(at, 'DD.MM.YYYY HH24:MI:SS') AS b, to_char(day, 'Mon DD, YYYY') AS c, to_char(at, 'HH12:MI AM') AS d FROM t;
SELECT id, to_char(day, 'FMDay, FMDD FMMonth YYYY') AS a, to_char(day, 'Day|Month|') AS b, to_char(day, 'DY MON "Q"Q') AS c, to_char(day, 'IYYY-IW DDD') AS d, to_char(at, 'MS US') AS e FROM t;
SELECT to_date('2024-03-05', 'YYYY-MM-DD') AS a, to_date('05/3/2024', 'DD/MM/YYYY') AS b, to_date('20240305', 'YYYYMMDD') AS c, make_date(2024, 2, 29) AS d FROM t WHERE id = 1;
SELECT to_timestamp(1704067200) AS a, to_timestamp('2024-01-05 10:20', 'YYYY-MM-DD HH24:MI') AS b FROM t WHERE id = 1;
SELECT id, date(at) AS d, at::date = day AS same, day < at AS before FROM t;
SELECT seen AT TIME ZONE 'Europe/Paris', seen AT TIME ZONE 'UTC' AS utc, seen AT TIME ZONE 'America/St_Johns' AS early, seen AT TIME ZONE 'Asia/Kathmandu' AS late FROM t;
SELECT (seen AT TIME ZONE 'America/New_York')::date AS day, count(*) AS n FROM t GROUP BY 1;
SELECT x AT TIME ZONE 'Europe/Berlin' AS local FROM (VALUES (timestamptz '2024-03-31 00:59:59.999999Z'), ('2024-03-31 01:00Z'), ('2024-10-27 00:30Z'), ('2024-10-27 01:30Z'), ('1969-12-31 23:59:59.5Z')) AS v(x), t WHERE t.id = 1;
SELECT day, count(*) AS n FROM t GROUP BY day HAVING count(*) > 1;
SELECT date_trunc('month', day)::date AS month, count(*) AS n, sum(price) AS s FROM t GROUP BY 1;
SELECT min(day) AS a, max(at) AS b, max(seen) AS c, max(day) - min(day) AS span FROM t;
SELECT id, greatest(day, date '2024-02-01') AS g, least(day, at) AS l, coalesce(day, '2000-01-01') AS c FROM t;

-- topic: conditions
SELECT id FROM t WHERE ok;
SELECT id FROM t WHERE ok IS NOT TRUE;
SELECT id, ok IS UNKNOWN AS u, ok IS NOT FALSE AS f, ok = 't' AS t, NOT ok AS n FROM t;
SELECT id, name IS DISTINCT FROM code AS a, price IS NOT DISTINCT FROM 10 AS b, NULL IS DISTINCT FROM id AS c FROM t;
SELECT id FROM t WHERE id IN (1, 3, 5) AND name NOT IN ('beta', 'x');
SELECT id FROM t WHERE id NOT IN (1, NULL);
SELECT id FROM t WHERE (id, name) IN ((1, 'Alpha'), (2, 'zzz'));
SELECT id FROM t WHERE (id, big) = (3, 30) OR (small, id) < (2, 5);
SELECT id, (small, id) >= (2, 4) AS ge, (small, name) <> (2, 'beta') AS ne FROM t;
SELECT id FROM t WHERE price NOT BETWEEN 5 AND 20;
SELECT id FROM t WHERE id BETWEEN SYMMETRIC 5 AND 2;
SELECT id FROM t WHERE id = ANY (ARRAY[1, 2, 7]) OR name = ANY ('{beta,gamma}');
SELECT id, 2 = ANY (nums) AS a, 2 <> ALL (nums) AS b, id > ANY (nums) AS c, id >= ALL (nums) AS d FROM t;
SELECT id, CASE WHEN ok THEN 'y' WHEN NOT ok THEN 'n' ELSE '?' END AS c, CASE ok WHEN true THEN 1 END AS d FROM t;
SELECT id, small = 2 IS TRUE AS a, (price > 5) = ok AS b FROM t;
SELECT id FROM t WHERE price IS NULL OR name ISNULL OR day NOTNULL AND ok IS NULL;

-- topic: arrays
SELECT id, nums[1] AS a, nums[3] AS b, nums[0] AS c, nums[id] AS d FROM t;
SELECT id, nums[1:2] AS a, nums[2:] AS b, array_length(nums, 1) AS n, cardinality(nums) AS c FROM t;
SELECT id, nums || 9 AS a, 0 || nums AS b, nums || ARRAY[7, 8] AS c, nums || nums AS d FROM t;
SELECT id, nums @> ARRAY[2] AS a, nums && ARRAY[2, 9] AS b, ARRAY[1, 2, 3] @> nums AS c FROM t;
SELECT id, ARRAY[id, small, 3] AS a, ARRAY[price, 1] AS b, ARRAY['x', name] AS c, '{1,2,NULL}'::int[] AS d FROM t;
SELECT id, array_append(nums, 5) AS a, array_prepend(5, nums) AS b, array_position(nums, 2) AS p, array_cat(nums, nums) AS c FROM t;
SELECT t.id, n FROM t, unnest(t.nums) AS n;
SELECT t.id, x.n, x.place FROM t CROSS JOIN LATERAL unnest(t.nums) WITH ORDINALITY AS x(n, place);
SELECT t.id, x.tag FROM t LEFT JOIN LATERAL unnest(t.tags) AS x(tag) ON true;
SELECT id, unnest(nums) AS n FROM t;
SELECT id FROM t WHERE nums = ARRAY[1, 2, 3] OR nums = '{}';

-- topic: json
SELECT id, doc ->> 'name' AS a, (doc ->> 'n')::int AS n, doc -> 'in' ->> 'x' AS x, doc #>> '{in,x}' AS y FROM t;
SELECT id FROM t WHERE doc ->> 'name' = 'one' OR (doc ->> 'flag')::boolean;
SELECT id, doc -> 'list' ->> 0 AS first, doc #>> '{list,1}' AS second, doc ->> 'missing' AS none, jsonb_array_length(doc -> 'list') AS n FROM t;
SELECT doc ->> 'name' AS k, count(*) AS n, sum((doc ->> 'n')::int) AS s FROM t GROUP BY 1;

-- topic: aggregates
SELECT count(*) AS a, count(name) AS b, count(DISTINCT name) AS c, count(DISTINCT ok) AS d FROM t;
SELECT sum(small) AS a, sum(id) AS b, sum(big) AS c, sum(price) AS d, sum(ratio) AS e FROM t;
SELECT ok, count(*) FILTER (WHERE id > 3) AS a, sum(id) FILTER (WHERE name IS NOT NULL) AS b, max(price) FILTER (WHERE false) AS c FROM t GROUP BY ok;
SELECT bool_and(ok) AS a, bool_or(ok) AS b, every(id > 0) AS c, bit_and(id) AS d, bit_or(id) AS e FROM t;
SELECT ok, string_agg(name, ',' ORDER BY id) AS a, string_agg(name, '/' ORDER BY name DESC, id) AS b, string_agg(DISTINCT name, '') AS c FROM t GROUP BY ok;
SELECT string_agg(name, ', ' ORDER BY price, id) AS a, string_agg(id::text, '' ORDER BY day DESC, id DESC) AS b FROM t;
SELECT string_agg(name, ',' ORDER BY id) FILTER (WHERE id > 2) AS a, string_agg(name, ',') FILTER (WHERE false) AS b FROM t;
SELECT ok, array_agg(id ORDER BY id) AS a, array_agg(name ORDER BY id DESC) AS b, array_agg(small ORDER BY small) AS c FROM t GROUP BY ok;
SELECT array_agg(DISTINCT small ORDER BY small) AS a, array_agg(id ORDER BY price DESC, id DESC) AS b, array_agg(id) FILTER (WHERE id > 100) AS c FROM t;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) AS a, percentile_cont(0.25) WITHIN GROUP (ORDER BY price DESC) AS b, percentile_cont(0.9) WITHIN GROUP (ORDER BY ratio) AS c FROM t;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) AS a, percentile_disc(0.3) WITHIN GROUP (ORDER BY ratio DESC) AS b FROM t;
SELECT mode() WITHIN GROUP (ORDER BY name) AS a, mode() WITHIN GROUP (ORDER BY small) AS b FROM t;
SELECT stddev(ratio) AS a, var_pop(ratio) AS b, stddev_pop(id::float8) AS c, variance(ratio) AS d FROM t;
SELECT corr(id, ratio) AS a, covar_pop(id, ratio) AS b, regr_slope(ratio, id) AS c, regr_count(ratio, id) AS d, regr_intercept(ratio, id) AS e FROM t;
SELECT name, count(*) AS n FROM t GROUP BY name HAVING count(*) > 1 AND min(id) < 5;
SELECT lower(name) AS name, count(*) AS n FROM t GROUP BY name;
SELECT lower(name) AS low, count(*) AS n FROM t GROUP BY low;
SELECT id % 2 AS odd, ok, sum(price) AS s FROM t GROUP BY 1, 2;
SELECT ok, small, count(*) AS n, grouping(ok) AS g, grouping(ok, small) AS h FROM t GROUP BY GROUPING SETS ((ok), (small), ());
SELECT ok, small, sum(id) AS s FROM t GROUP BY ROLLUP (ok, small);
SELECT ok, small, sum(id) AS s FROM t GROUP BY CUBE (ok, small);
SELECT count(*) AS n, sum(id) AS s, avg(price) AS a FROM t WHERE false;
SELECT sum(CASE WHEN ok THEN price ELSE 0 END) AS yes, sum(id * price) AS weighted FROM t;

-- topic: windows
SELECT id, row_number() OVER (ORDER BY price, id) AS a, row_number() OVER (ORDER BY price DESC, id) AS b FROM t;
SELECT id, rank() OVER (ORDER BY small) AS r, dense_rank() OVER (ORDER BY small DESC) AS d, percent_rank() OVER (ORDER BY small) AS p, cume_dist() OVER (ORDER BY small) AS c FROM t;
SELECT id, ntile(3) OVER (ORDER BY id) AS n, lag(id) OVER (ORDER BY day, id) AS l, lead(name, 2, '-') OVER (ORDER BY id) AS m, lag(price, 1, 0) OVER (PARTITION BY ok ORDER BY id) AS p FROM t;
SELECT id, first_value(name) OVER (ORDER BY price, id) AS f, last_value(id) OVER (ORDER BY day, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l, nth_value(id, 2) OVER (ORDER BY id) AS n FROM t;
SELECT id, sum(price) OVER (ORDER BY id) AS run, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near, count(*) OVER () AS n FROM t;
SELECT id, avg(id) OVER (PARTITION BY ok) AS a, max(price) OVER (PARTITION BY ok ORDER BY id) AS m FROM t;
SELECT id, sum(id) FILTER (WHERE ok) OVER (ORDER BY id) AS f, count(*) FILTER (WHERE ok) OVER () AS c FROM t;
SELECT id, sum(id) OVER w AS s, count(*) OVER w AS n, row_number() OVER (w ORDER BY id) AS r FROM t WINDOW w AS (PARTITION BY ok);
SELECT id, sum(id) OVER (ORDER BY small RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS r, sum(id) OVER (ORDER BY day RANGE BETWEEN interval '10 days' PRECEDING AND CURRENT ROW) AS d FROM t;
SELECT ok, sum(count(*)) OVER (ORDER BY ok) AS running, count(*) AS n FROM t GROUP BY ok;
SELECT * FROM (SELECT id, name, row_number() OVER (PARTITION BY name ORDER BY id DESC) AS n FROM t) AS q WHERE n = 1;

-- topic: distinct on and limits
SELECT DISTINCT ON (name) name, id, price FROM t ORDER BY name, id DESC;
SELECT DISTINCT ON (ok) ok, id FROM t ORDER BY ok, price, id;
SELECT DISTINCT ON (ok, small) ok, small, id FROM t ORDER BY ok, small, id DESC;
SELECT DISTINCT ON (id % 3) id % 3 AS bucket, name, id FROM t ORDER BY id % 3, id DESC LIMIT 2;
SELECT DISTINCT ok, small FROM t;
SELECT id, price FROM t ORDER BY price, id LIMIT 3;
SELECT id, price FROM t ORDER BY price DESC, id LIMIT 3;
SELECT id, name FROM t ORDER BY name NULLS FIRST, id DESC OFFSET 2 LIMIT 4;
SELECT id FROM t ORDER BY id FETCH FIRST 3 ROWS ONLY;
SELECT id AS x, price AS id FROM t ORDER BY id DESC, x FETCH NEXT ROW ONLY;
SELECT id, lower(name) AS l FROM t ORDER BY 2 DESC, 1 LIMIT 5;
SELECT name, sum(price) AS total FROM t GROUP BY name ORDER BY sum(price) DESC, name LIMIT 2;
SELECT id FROM t ORDER BY id LIMIT ALL;
SELECT DISTINCT ok FROM t ORDER BY ok LIMIT 2;

-- topic: joins and subqueries
SELECT t.id, u.label FROM t JOIN u ON u.t_id = t.id;
SELECT a.id, b.label, b.qty FROM t AS a LEFT JOIN u b ON a.id = b.t_id AND b.qty > 1;
SELECT * FROM (SELECT id, name FROM t) x FULL JOIN (SELECT id, label FROM u) y USING (id);
SELECT id, x.name, y.label FROM (SELECT id, name FROM t) x RIGHT JOIN (SELECT id, label FROM u) y USING (id);
SELECT * FROM (SELECT id, name FROM t) x NATURAL JOIN (SELECT id, qty FROM u) y;
SELECT t.id, s.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.t_id = t.id) s;
SELECT t.id, s.label FROM t LEFT JOIN LATERAL (SELECT label FROM u WHERE u.t_id = t.id ORDER BY qty DESC, u.id LIMIT 1) s ON true;
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id AND u.qty > 2);
SELECT id FROM t WHERE id NOT IN (SELECT t_id FROM u WHERE t_id IS NOT NULL);
SELECT id FROM t WHERE id NOT IN (SELECT t_id FROM u);
SELECT id FROM t WHERE id = ANY (SELECT t_id FROM u) AND price > (SELECT avg(price) FROM t);
SELECT id, (SELECT max(qty) FROM u WHERE u.t_id = t.id) AS most FROM t;
SELECT id FROM t WHERE (id, small) IN (SELECT t_id, qty FROM u);
WITH x AS MATERIALIZED (SELECT id, price FROM t WHERE price > 5), y(k, v) AS (SELECT id, price * 2 FROM x) SELECT y.k, y.v, x.price FROM x JOIN y ON y.k = x.id;
SELECT v.n, v.word, t.name FROM (VALUES (1, 'one'), (2, 'two'), (3, NULL)) AS v(n, word) JOIN t ON t.id = v.n;
SELECT t.id, g FROM t, generate_series(1, t.small) AS g;
SELECT t.id, g.n FROM t CROSS JOIN generate_series(5, 1, -2) AS g(n) WHERE t.id < 3;
SELECT g.d::date AS day, count(t.id) AS n FROM generate_series(date '2024-01-29', date '2024-02-02', interval '1 day') AS g(d) LEFT JOIN t ON t.day = g.d::date GROUP BY 1;
SELECT t.id, m FROM t, generate_series(timestamp '2024-01-15', timestamp '2024-04-15', '1 month') AS m WHERE t.id = 1;
SELECT t.id, g FROM t, generate_series(3, 1) AS g;
SELECT id, name FROM public.t WHERE t.id < 3;
SELECT "id" AS "Id", T.NAME AS "Full Name" FROM T WHERE "name" = 'Alpha';
SELECT a.id, b.id AS b, c.id AS c FROM (SELECT id FROM t WHERE id < 3) a, t b RIGHT JOIN u c ON b.id = c.t_id AND b.id > 2;
SELECT a.id, b.id AS b, c.id AS c FROM (SELECT id FROM t WHERE id < 3) a, (SELECT id FROM t WHERE id < 4) b FULL JOIN (SELECT id, t_id FROM u) c ON b.id = c.t_id, (SELECT id AS last FROM t WHERE id = 1) d;
SELECT a.id, b.small, c.qty FROM (SELECT id FROM t) a, (SELECT id AS k, small FROM t) b NATURAL JOIN (SELECT t_id AS k, qty, id FROM u) c;

-- topic: sets
SELECT id FROM t UNION SELECT t_id FROM u;
SELECT small FROM t UNION ALL SELECT qty FROM u;
SELECT id, price FROM t UNION ALL SELECT id, 1 FROM u;
SELECT id FROM t INTERSECT SELECT t_id FROM u;
SELECT id FROM t EXCEPT SELECT t_id FROM u;
SELECT small FROM t EXCEPT ALL SELECT qty FROM u;
SELECT small FROM t INTERSECT ALL SELECT qty FROM u;
(SELECT id FROM t ORDER BY price, id LIMIT 2) UNION ALL (SELECT id FROM t ORDER BY price DESC, id LIMIT 2);
SELECT id FROM t UNION SELECT qty FROM u ORDER BY 1 DESC LIMIT 3;
SELECT name, NULL AS x FROM t WHERE id < 3 UNION ALL SELECT label, 'given' FROM u;

-- topic: more
SELECT id, id IN (SELECT t_id FROM u) AS a, small NOT IN (SELECT qty FROM u) AS b, id IN (SELECT t_id FROM u WHERE t_id > 0) AS c FROM t;
SELECT id FROM t WHERE NOT (id IN (SELECT t_id FROM u) AND ok) OR id NOT IN (SELECT t_id FROM u WHERE qty > 2);
SELECT id FROM t WHERE CASE WHEN ok THEN id = ANY (SELECT t_id FROM u) ELSE id IN (SELECT qty FROM u) IS NULL END;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT t.id, r.n FROM t JOIN r ON r.n = t.small;
SELECT '7'::bigint * 2000000000 AS a, '3'::smallint + 1 AS b, 5::bigint / 2 AS c FROM t WHERE id = 1;
SELECT id, NULL AS x FROM t UNION ALL SELECT id, qty FROM u;
SELECT id, lag(id, 1, 0.5) OVER (ORDER BY id) AS l FROM t;
SELECT DISTINCT lower(name) AS l FROM t ORDER BY l DESC LIMIT 3;
SELECT id FROM t WHERE id = ANY (SELECT t_id FROM u) OR small <> ALL (SELECT qty FROM u WHERE qty > 2);
SELECT id FROM t WHERE id > ALL (SELECT qty FROM u WHERE u.t_id = t.id) AND id < SOME (SELECT t_id FROM u);
SELECT id, small > ANY (SELECT qty FROM u) AS a, small <= ALL (SELECT qty FROM u) AS b, id <> ANY (SELECT qty FROM u WHERE u.t_id = t.id) AS c, NOT id = ALL (SELECT t_id FROM u WHERE qty > 100) AS d FROM t;

-- topic: traps
SELECT id, price * price * price * price AS p4, (price + 0.001) * (price - 0.001) AS d FROM t;
SELECT sum(price) * sum(price) * 1.123456 AS a, sum(cost) * 0.333333 AS b FROM t, u;
SELECT sum(big) / sum(price) AS a, sum(price) / nullif(sum(small), 0) AS b, sum(id) * 1.0 / count(*) AS c FROM t;
SELECT id, 100.0 * id / 7 AS pct, round(100.0 * id / 7, 2) AS r, (price / 3)::numeric(10, 2) AS n, (price / 3)::int AS i FROM t;
SELECT id, big / 1000 * 1000 AS a, big % 1000 AS b, big * 1.0 AS c, big + 0.5 AS d FROM t;
SELECT id, price / -3 AS a, -price / 3 AS b, 0 / (price + 1) AS zero, 1e10 / 3 AS large, 1e-5 / 3 AS small FROM t WHERE price IS NULL OR price <> -1;
SELECT round(-0.5) AS a, round(-1.5) AS b, round(1.45, 1) AS c, round(-1.45, 1) AS d, trunc(-1.999, 2) AS e, trunc(12345.678, -2) AS f, round(12345.678, -2) AS g FROM t WHERE id = 1;
SELECT id, round(price::float8) AS a, price::float8::numeric(8, 1) AS b, round(avg(price) OVER (), 3) AS c, (id / 3.0)::float8 AS d FROM t;
SELECT id, coalesce(small, 0) / 2 AS a, coalesce(price, id) / 2 AS b, CASE WHEN ok THEN id ELSE 2.5 END / 2 AS c, nullif(small, 0) / 2 AS d FROM t;
SELECT id, (SELECT sum(qty) FROM u WHERE u.t_id = t.id) / 2 AS a, (SELECT avg(qty) FROM u WHERE u.t_id = t.id) AS b FROM t;
SELECT x.h / 2 AS q, x.h % 2 AS r FROM (SELECT id / 2 AS h FROM t) AS x;
WITH s AS (SELECT name, sum(id) AS s, count(*) AS n FROM t GROUP BY name) SELECT name, s / n AS mean, s::numeric / n AS exact FROM s;
SELECT id, 'a' < 'B' AS a, 'a' || 1 || 2.50 AS b, 'x' || price AS c, price || '' AS d, -id || 'n' AS e FROM t;
SELECT id, length(name || '  ') AS a, trim(TRAILING FROM name || '  ') AS b, name || '' = name AS c, '' IS NULL AS d FROM t;
SELECT id, substring(name, 0) AS a, substring(name, 3, 0) AS b, substring(name FROM -5 FOR 20) AS c, substring(name, 100) AS d, left(name, 100) AS e, right(name, -100) AS f FROM t;
SELECT id, lpad(name, 0, 'x') AS a, lpad('', 3, 'ab') AS b, rpad(name, 3, '') AS c, repeat(name, 0) AS d, repeat('ab', -1) AS e, replace(name, '', 'x') AS f FROM t;
SELECT id, split_part(code, '.', 2) AS a, split_part(code, '', 1) AS b, split_part(name, 'alpha', 2) AS c, strpos(code, '%') AS d, strpos('', 'a') AS e FROM t;
SELECT id, code LIKE '%\%' AS a, code LIKE '_0%' AS b, name LIKE '' AS c, name LIKE '%' AS d, name ILIKE 'IT''S' AS e, code LIKE '%\\%' AS f FROM t;
SELECT id, name ~ '' AS a, name ~ 'a{2}' AS b, name ~ '^.{5}$' AS c, name ~ '[^a-z]' AS d, code ~ '^[+-]?\d*\.?\d+$' AS e, name ~ '\salpha\s' AS f, name ~ '^$' AS g FROM t;
SELECT id, regexp_replace(name, '^\s+', '') AS a, regexp_replace(name, '.', 'X') AS b, regexp_replace(code, '\d', '$0', 'g') AS c, regexp_replace(name, 'z', 'y') AS d, regexp_replace(name, '(.)$', '[\1]') AS e FROM t;
SELECT id, day + 30 AS a, day - interval '1 month' AS b, (day + interval '1 month')::date - day AS c, day + interval '1 year' AS d, date '2024-01-31' + interval '1 month' AS e FROM t;
SELECT id, at - interval '1 month' + interval '1 month' AS a, interval '1 day' + at AS b, at + interval '1 mon 1 day' AS c, at - interval '25:30:15.5' AS d, at + interval '-3 days' AS e FROM t;
SELECT id, extract(week FROM at) AS a, extract(isoyear FROM at) AS b, extract(dow FROM seen) AS c, extract(month FROM seen) AS d, extract(microseconds FROM at) AS e, extract(epoch FROM at)::bigint AS f FROM t;
SELECT id, extract(hour FROM at - timestamp '2024-01-15 06:30') AS h, extract(minute FROM timestamp '2024-01-15 06:30:30' - at) AS m, extract(day FROM seen - timestamptz '2024-01-15 06:30Z') AS d, at - interval '1 day' < at AS l FROM t;
SELECT id, date_trunc('second', at) AS a, date_trunc('year', seen) AS b, date_trunc('week', seen) AS c, date_trunc('quarter', at) AS d, date_trunc('week', day)::date AS e FROM t;
SELECT id, to_char(at, 'HH:MI:SS pm') AS a, to_char(at, 'FMHH12:MI') AS b, to_char(day, 'HH24:MI') AS c, to_char(seen, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS d, to_char(day, 'FMMM/FMDD/YYYY') AS e, to_char(day, 'D ID') AS f FROM t;
SELECT id, at > day AS a, seen > at AS b, seen::date = day AS c, at = '2024-01-31 10:30' AS d, day >= '2024-01-31'::timestamp AS e, greatest(at, day) AS f FROM t;
SELECT name, count(*) AS n, array_agg(price ORDER BY price DESC NULLS LAST) AS a, array_agg(id ORDER BY name, id) AS b, string_agg(code, '|' ORDER BY code NULLS FIRST) AS c FROM t GROUP BY name;
SELECT count(DISTINCT small) AS a, sum(DISTINCT small) AS b, avg(DISTINCT price) AS c, max(name) FILTER (WHERE ok) AS d, count(*) FILTER (WHERE price IS NULL) AS e, bool_or(price > 50) AS f FROM t;
SELECT ok, percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS m, mode() WITHIN GROUP (ORDER BY name DESC) AS d, percentile_disc(0.5) WITHIN GROUP (ORDER BY small) AS p FROM t GROUP BY ok;
SELECT id, rank() OVER (PARTITION BY ok ORDER BY price DESC) AS r, sum(price) OVER (PARTITION BY ok ORDER BY day, id ROWS UNBOUNDED PRECEDING) AS s, avg(price) OVER (ORDER BY id ROWS 2 PRECEDING) AS a FROM t;
SELECT id, max(day) OVER (PARTITION BY name) - day AS d, price / sum(price) OVER () AS share, lag(day) OVER (ORDER BY day DESC, id) AS l FROM t;
SELECT DISTINCT ON (lower(trim(name))) id, name FROM t ORDER BY lower(trim(name)), price DESC NULLS LAST, id;
SELECT DISTINCT ON (2) id, small FROM t ORDER BY small DESC, id;
SELECT name AS n, max(price) AS price FROM t GROUP BY n HAVING max(price) > 5 ORDER BY price DESC, n LIMIT 3;
SELECT u.* , t.name FROM u LEFT JOIN t ON t.id = u.t_id AND t.ok;
SELECT u.*, t.price FROM t JOIN u ON u.t_id = t.id WHERE u.qty >= ALL (ARRAY[1, 2]);
SELECT a.id, b.id AS other FROM t a JOIN t b ON a.small = b.small AND a.id < b.id;
SELECT coalesce(t.id, u.t_id) AS k, t.name, u.label FROM t FULL OUTER JOIN u ON t.id = u.t_id;
SELECT id FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.t_id = t.id AND (u.qty > t.small OR u.label = t.name));
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id) THEN 'has' ELSE 'none' END AS h FROM t;
SELECT s.k, s.total FROM (SELECT t_id AS k, sum(qty) AS total FROM u GROUP BY t_id) s WHERE s.total IS DISTINCT FROM 0;
SELECT id, name FROM t WHERE (name, code) IS DISTINCT FROM ('beta', '-7');
SELECT t.id, x.a, x.b FROM t, LATERAL (SELECT t.id * 2 AS a, t.price / 2 AS b) AS x;
SELECT t.id, p FROM t, unnest(string_to_array(t.code, ',')) AS p;
SELECT g, (SELECT count(*) FROM t WHERE t.small = g) AS n FROM generate_series(-3, 3, 3) AS g, u WHERE u.id = 1;
