"""Roles in the SQL of `migrate --print-grants`: whatever their names, the rights are theirs, and nothing else runs."""

from __future__ import annotations

import hypothesis.strategies as st
import psycopg
from hypothesis import assume, example, given
from psycopg import sql
from tests.fuzz.examples import fuzzed, fuzzed_slowly
from tests.fuzz.outside import any_text
from tests.postgres.fixtures import PostgresSchema

from holdfast import InvalidOptions
from holdfast.stores.postgres.grants import DUTIES, grants

names = st.text(st.sampled_from("ab'\"$;-\\ \n%{}é") | st.characters(codec="utf-8"), min_size=1, max_size=12)


@fuzzed
@given(any_text, any_text | st.sampled_from(sorted(DUTIES)))
@example("a\ud800", "worker")
@example("a$holdfast$b", "migrator")
def test_grants_are_for_a_role_that_can_be_or_refused(role: str, duty: str) -> None:
    try:
        text = grants("holdfast", [(duty, role)])
    except InvalidOptions:
        return
    text.encode("utf-8")
    assert "\0" not in text


@fuzzed_slowly
@given(name=names, duty=st.sampled_from(sorted(DUTIES)))
@example(name="a$$; SELECT 1/0; --", duty="migrator")
@example(name="a' || 'b\"; --", duty="migrator")
@example(name='a"; SELECT 1/0; --', duty="worker")
def test_the_rights_are_given_to_the_role_of_that_name(name: str, duty: str, postgres_tables: PostgresSchema) -> None:
    try:
        script = grants(postgres_tables.schema, [(duty, name)])
    except InvalidOptions:
        return
    role = sql.Identifier(name)
    with psycopg.connect(postgres_tables.url, autocommit=True) as connection:
        try:
            connection.execute(sql.SQL("CREATE ROLE {}").format(role))
        except psycopg.Error:
            assume(False)
        try:
            connection.execute(script)  # type: ignore[call-overload]
            what = "has_database_privilege(%s, current_database(), 'CREATE')"
            if duty != "migrator":
                what = f"has_schema_privilege(%s, '{postgres_tables.schema}', 'USAGE')"
            assert connection.execute(f"SELECT {what}", [name]).fetchone() == (True,)  # type: ignore[call-overload]
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {}; DROP ROLE {}").format(role, role))
