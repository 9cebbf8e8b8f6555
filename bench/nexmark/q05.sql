WITH counted AS (
  SELECT b.auction, w AS started, COUNT(*) AS num
  FROM bid b LATERAL VIEW explode(sequence(
    CAST(floor(unix_timestamp(b.at) / 20) * 20 - 40 AS BIGINT), CAST(floor(unix_timestamp(b.at) / 20) * 20 AS BIGINT), 20L)) AS w
  GROUP BY b.auction, w)
SELECT c.auction, c.num, c.started
FROM counted c JOIN (SELECT started, MAX(num) AS most FROM counted GROUP BY started) m
  ON c.started = m.started AND c.num >= m.most
