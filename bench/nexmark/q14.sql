SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(20, 3)) AS price,
  CASE WHEN hour(at) >= 8 AND hour(at) <= 18 THEN 'dayTime' WHEN hour(at) <= 6 OR hour(at) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bid_time_type,
  at, extra, length(extra) - length(replace(extra, '1', '')) AS ones
FROM bid WHERE 0.908 * price > 100 AND 0.908 * price < 900
