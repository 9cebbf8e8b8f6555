SELECT auction, bidder, price, channel, url, b.at AS bid_at, item, initial, reserve, a.at AS auction_at, expires, seller, category
FROM bid AS b INNER JOIN auction AS a ON b.auction = a.id WHERE a.category = 10
