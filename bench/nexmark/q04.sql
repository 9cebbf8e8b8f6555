SELECT category, AVG(final) AS average
FROM (
  SELECT MAX(b.price) AS final, a.category
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.at BETWEEN a.at AND a.expires
  GROUP BY a.id, a.category)
GROUP BY category
