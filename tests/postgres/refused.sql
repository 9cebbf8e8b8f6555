-- refuse: the function age()
SELECT age(at, seen) FROM t;
-- refuse: an interval as a column
SELECT at - timestamp '2024-01-01' FROM t;
-- refuse: interval as a column
SELECT interval '1 day' FROM t;
-- refuse: real
SELECT sum(id::real) FROM t;
-- refuse: stddev() of integer
SELECT stddev(id) FROM t;
-- refuse: sqrt() of numeric
SELECT sqrt(price) FROM t;
-- refuse: power of numeric
SELECT power(price, 2) FROM t;
-- refuse: double precision as text
SELECT ratio::text FROM t;
-- refuse: double precision as text
SELECT name || ratio FROM t;
-- refuse: timestamp with time zone as text
SELECT seen::text FROM t;
-- refuse: numeric as text
SELECT avg(price)::text FROM t;
-- refuse: to numeric without a scale
SELECT name::numeric FROM t;
-- refuse: numeric without a scale
SELECT ratio::numeric FROM t;
-- refuse: round(double precision, n)
SELECT round(ratio, 2) FROM t;
-- refuse: the function initcap()
SELECT initcap(name) FROM t;
-- refuse: the function random()
SELECT random() FROM t;
-- refuse: to_char() of numeric
SELECT to_char(price, '999.99') FROM t;
-- refuse: the format 'YYYY WW' of to_char
SELECT to_char(day, 'YYYY WW') FROM t;
-- refuse: the format 'Mon YYYY' of to_date
SELECT to_date(name, 'Mon YYYY') FROM t;
-- refuse: date_trunc('century')
SELECT date_trunc('century', at) FROM t;
-- refuse: extract(hour) from a date
SELECT extract(hour FROM day) FROM t;
-- refuse: extract(julian)
SELECT extract(julian FROM at) FROM t;
-- refuse: integer = text
SELECT id FROM t WHERE id = name;
-- refuse: text > integer
SELECT id FROM t WHERE code > 5;
-- refuse: + of text and integer
SELECT code + 1 FROM t;
-- refuse: CASE of integer and text
SELECT CASE WHEN ok THEN id ELSE name END FROM t;
-- refuse: FETCH FIRST ... WITH TIES
SELECT id FROM t ORDER BY small FETCH FIRST 2 ROWS WITH TIES;
-- refuse: JSON document as a column
SELECT doc::jsonb -> 'in' FROM t;
-- refuse: @>
SELECT id FROM t WHERE doc::jsonb @> '{"n": 1}';
-- refuse: ?
SELECT id FROM t WHERE doc::jsonb ? 'n';
-- refuse: jsonb_agg()
SELECT jsonb_agg(id) FROM t;
-- refuse: jsonb_array_elements(
SELECT t.id, x FROM t, jsonb_array_elements(doc::jsonb -> 'list') AS x;
-- refuse: '(a|ab)(c|bcd)'
SELECT regexp_replace(name, '(a|ab)(c|bcd)', '') FROM t;
-- refuse: lookaround
SELECT id FROM t WHERE name ~ 'a(?=b)';
-- refuse: a regular expression that is not constant
SELECT id FROM t WHERE name ~ code;
-- refuse: regexp_match()
SELECT regexp_match(name, 'a') FROM t;
-- refuse: cast to char
SELECT name::char(10) FROM t;
-- refuse: cast to uuid
SELECT name::uuid FROM t;
-- refuse: the date 'today'
SELECT 'today'::date FROM t;
-- refuse: the date '31/12/2024'
SELECT id FROM t WHERE day = '31/12/2024';
-- refuse: generate_series() by months
SELECT m FROM t, generate_series(t.at, timestamp '2024-12-31', interval '1 month') AS m;
-- refuse: GROUPS or EXCLUDE
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM t;
-- refuse: over a subquery in this comparison
SELECT id FROM t WHERE (id, small) > ALL (SELECT qty, qty FROM u);
-- refuse: ARRAY(SELECT ...)
SELECT ARRAY(SELECT qty FROM u) FROM t;
-- refuse: COLLATE en_US
SELECT id FROM t ORDER BY name COLLATE "en_US" LIMIT 1;
-- refuse: LOCKS
SELECT id FROM t FOR UPDATE;
-- refuse: SAMPLE in FROM
SELECT id FROM t TABLESAMPLE BERNOULLI (10);
-- refuse: AT TIME ZONE of timestamp
SELECT at AT TIME ZONE 'Europe/Paris' FROM t;
-- refuse: AT TIME ZONE UTC+3
SELECT seen AT TIME ZONE 'UTC+3' FROM t;
-- refuse: AT TIME ZONE EST
SELECT seen AT TIME ZONE 'EST' FROM t;
-- refuse: a character escape by number
SELECT E'\x41' AS a FROM t;
-- refuse: more than 38 digits
SELECT 123456789012345678901234567890123456789 AS n FROM t;
-- refuse: min() of boolean
SELECT min(ok) FROM t;
-- refuse: (id, name)
SELECT count(DISTINCT (id, name)) FROM t;
-- refuse: array_agg() ordered both up and down
SELECT array_agg(id ORDER BY small, id DESC) FROM t;
-- refuse: column total is not found
SELECT sum(price) AS total FROM t HAVING total > 1;
-- refuse: an array of arrays
SELECT ARRAY[ARRAY[1], ARRAY[2]] FROM t;
-- refuse: a condition of type text
SELECT id FROM t WHERE name;
-- refuse: string_agg() of these types
SELECT string_agg(id, ',') FROM t;
-- refuse: LIKE of integer
SELECT id FROM t WHERE id LIKE '1%';
-- refuse: numeric where integer is wanted
SELECT array_append(nums, 1.5) FROM t;
-- refuse: JSON document
SELECT (doc::jsonb -> 'in') || (doc::jsonb -> 'in') FROM t;
-- refuse: LATERAL together with an outer
SELECT t.id FROM t, LATERAL (SELECT u.id AS k FROM u WHERE u.t_id = t.id) s RIGHT JOIN u ON u.id = s.k;
