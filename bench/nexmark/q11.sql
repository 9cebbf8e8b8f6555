WITH gaps AS (
  SELECT bidder, at, CASE WHEN unix_timestamp(at) - LAG(unix_timestamp(at)) OVER (PARTITION BY bidder ORDER BY at) <= 10 THEN 0 ELSE 1 END AS is_new
  FROM bid),
sessions AS (
  SELECT bidder, at, SUM(is_new) OVER (PARTITION BY bidder ORDER BY at ROWS UNBOUNDED PRECEDING) AS session FROM gaps)
SELECT bidder, session, COUNT(*) AS bid_count, MIN(at) AS started, MAX(at) AS ended FROM sessions GROUP BY bidder, session
