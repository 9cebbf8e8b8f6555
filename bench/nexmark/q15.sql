SELECT date_format(at, 'yyyy-MM-dd HH:mm') AS minute, COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 100) AS rank1_bids,
  COUNT(*) FILTER (WHERE price >= 100 AND price < 500) AS rank2_bids,
  COUNT(*) FILTER (WHERE price >= 500) AS rank3_bids,
  COUNT(DISTINCT bidder) AS total_bidders,
  COUNT(DISTINCT bidder) FILTER (WHERE price < 100) AS rank1_bidders,
  COUNT(DISTINCT auction) AS total_auctions,
  COUNT(DISTINCT auction) FILTER (WHERE price >= 500) AS rank3_auctions
FROM bid GROUP BY date_format(at, 'yyyy-MM-dd HH:mm')
