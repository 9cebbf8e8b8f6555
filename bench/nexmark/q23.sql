SELECT b.auction, b.price, p.name AS seller_name, q.name AS bidder_name, a.category
FROM bid b JOIN auction a ON b.auction = a.id JOIN person p ON a.seller = p.id JOIN person q ON b.bidder = q.id
WHERE b.price > 500
