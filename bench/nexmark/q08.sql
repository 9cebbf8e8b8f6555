SELECT p.id, p.name, p.slot
FROM (SELECT id, name, floor(unix_timestamp(at) / 10) AS slot FROM person GROUP BY id, name, floor(unix_timestamp(at) / 10)) p
JOIN (SELECT seller, floor(unix_timestamp(at) / 10) AS slot FROM auction GROUP BY seller, floor(unix_timestamp(at) / 10)) a
  ON p.id = a.seller AND p.slot = a.slot
