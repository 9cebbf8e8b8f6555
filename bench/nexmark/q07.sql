SELECT b.auction, b.price, b.bidder, b.at
FROM bid b JOIN (
  SELECT MAX(price) AS top, floor(unix_timestamp(at) / 10) AS slot FROM bid GROUP BY floor(unix_timestamp(at) / 10)) m
  ON b.price = m.top AND floor(unix_timestamp(b.at) / 10) = m.slot
