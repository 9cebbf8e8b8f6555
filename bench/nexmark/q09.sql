SELECT id, item, seller, category, auction, bidder, price, bid_at
FROM (
  SELECT a.*, b.auction, b.bidder, b.price, b.at AS bid_at,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.at ASC) AS place
  FROM auction a, bid b WHERE a.id = b.auction AND b.at BETWEEN a.at AND a.expires)
WHERE place <= 1
