SELECT channel, date_format(at, 'yyyy-MM-dd') AS day, MAX(date_format(at, 'HH:mm')) AS minute, COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 100) AS rank1_bids, COUNT(DISTINCT bidder) AS total_bidders,
  COUNT(DISTINCT auction) FILTER (WHERE price < 100) AS rank1_auctions
FROM bid GROUP BY channel, date_format(at, 'yyyy-MM-dd')
