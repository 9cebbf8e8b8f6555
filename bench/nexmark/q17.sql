SELECT auction, date_format(at, 'yyyy-MM-dd') AS day, COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 100) AS rank1_bids, MIN(price) AS min_price, MAX(price) AS max_price,
  AVG(price) AS avg_price, SUM(price) AS sum_price
FROM bid GROUP BY auction, date_format(at, 'yyyy-MM-dd')
