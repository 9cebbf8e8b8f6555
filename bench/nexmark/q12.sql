SELECT bidder, COUNT(*) AS bid_count, floor(unix_timestamp(at) / 10) AS slot FROM bid GROUP BY bidder, floor(unix_timestamp(at) / 10)
