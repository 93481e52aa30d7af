"""Wrong arguments of `SitesTeam` and `join` are rejected by name, before a port is bound or a connection made."""

from __future__ import annotations

import pytest

import collabtop as ct


@pytest.mark.parametrize("name", ["wait", "grace", "answer_within", "keepalive"])
@pytest.mark.parametrize("value", ["x", 0, -1, float("inf"), float("nan"), True])
def test_seconds_of_a_coordinator_are_positive_numbers(certs, name, value):
    with pytest.raises(ct.InputError, match=f"^{name} is .*, but a positive number of seconds is needed"):
        ct.SitesTeam(["site0"], listen="localhost:0", cert=certs / "coordinator.pem", **{name: value})


@pytest.mark.parametrize("name", ["give_up", "keepalive"])
@pytest.mark.parametrize("value", ["x", None, 0, -1, float("inf"), float("nan"), True])
def test_seconds_of_a_site_are_positive_numbers(certs, name, value):
    with pytest.raises(ct.InputError, match=f"^{name} is .*, but a positive number of seconds is needed"):
        ct.join("localhost:1", ct.BernoulliArms([0.1, 0.9]), cert=certs / "site0.pem", **{name: value})


@pytest.mark.parametrize("run", ["last week's", "../north", "ab" * 16 + "\n", 7, None])
def test_a_run_id_is_32_digits(certs, run):
    with pytest.raises(ct.InputError, match=r"^run is .*, but a run id is needed: 32 hexadecimal digits"):
        ct.join("localhost:1", ct.BernoulliArms([0.1, 0.9]), cert=certs / "site0.pem", run=run)


@pytest.mark.parametrize("value", [2.5, 0, True, "2", None])
def test_min_batch_is_a_whole_number(certs, value):
    with pytest.raises(ct.InputError, match=r"^min_batch is .*, but a whole number of at least 1 is needed"):
        ct.join("localhost:1", ct.BernoulliArms([0.1, 0.9]), cert=certs / "site0.pem", min_batch=value)


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        ([("site0", 2.5)], "the number of agents of site 'site0' is 2.5, but a whole number of at least 1 is needed"),
        ([("site0", True)], "the number of agents of site 'site0' is True, but a whole number of at least 1 is needed"),
        ([("site0", 0)], "the number of agents of site 'site0' is 0, but a whole number of at least 1 is needed"),
        ([("site0",)], r"sites has \('site0',\), but a name or \(name, count\) is needed"),
        ([7], "sites has 7, but a name"),
        ([(7, 1)], "sites has .7, 1., but a name"),
        ("site0", "sites is 'site0', but a list of names is needed"),
        (7, "sites is 7, but a list of names is needed"),
        ([], "but a list of names is needed"),
    ],
)
def test_sites_are_names_with_whole_numbers_of_agents(certs, sites, message):
    with pytest.raises(ct.InputError, match=message):
        ct.SitesTeam(sites, listen="localhost:0", cert=certs / "coordinator.pem")


@pytest.mark.parametrize("address", [7443, None, "localhost", "localhost:65536", "localhost:" + "1" * 5_000])
def test_an_address_is_host_and_port(certs, address):
    with pytest.raises(ct.InputError, match=r"^listen is .*, but HOST:PORT is needed"):
        ct.SitesTeam(["site0"], listen=address, cert=certs / "coordinator.pem")
