SELECT auction, price FROM bid WHERE auction % 12 = 0
