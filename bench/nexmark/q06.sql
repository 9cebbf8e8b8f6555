SELECT seller, id, AVG(final) OVER (PARTITION BY seller ORDER BY at ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT a.id, a.seller, b.price AS final, b.at,
    ROW_NUMBER() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC) AS place
  FROM auction a JOIN bid b ON a.id = b.auction AND b.at BETWEEN a.at AND a.expires)
WHERE place <= 1
