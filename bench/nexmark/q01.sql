SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(20, 3)) AS price, at, extra FROM bid
