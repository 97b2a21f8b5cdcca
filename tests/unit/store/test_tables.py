"""The list of tables in src/store/postgres/database.c, which a check of the database reads, has each table that the
migrations make."""
import pathlib
import re
import unittest

STORE = pathlib.Path(__file__).resolve().parents[3] / "src/store/postgres"


class Tables(unittest.TestCase):
    def test_each_table_is_checked(self):
        made = set()
        for path in sorted((STORE / "migrations").glob("*.sql")):
            text = path.read_text()
            made |= set(re.findall(r"CREATE TABLE (\w+)", text))
            made -= set(re.findall(r"DROP TABLE (\w+)", text))
        source = (STORE / "database.c").read_text()
        named = re.findall(r'"(\w+)"', re.search(r"tables\[\] = \{(.*?)\};", source, re.S)[1])
        self.assertEqual(sorted(named), sorted(made))


if __name__ == "__main__":
    unittest.main()
