SELECT auction, bidder, price, at, extra FROM bid
