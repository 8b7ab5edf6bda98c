-- What is wrong with the host, as its agent finds it.
ALTER TABLE reports ADD COLUMN conditions TEXT;
-- What its guests are called and who they belong to, by uid: the labels of their conditions.
ALTER TABLE reports ADD COLUMN guest_labels TEXT;
