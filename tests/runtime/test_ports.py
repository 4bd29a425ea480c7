"""Free ports, and remembered ones."""

from adloom.runtime.ports import FREE_PORTS, choose_ports, find_port, is_taken


def test_a_remembered_port_is_kept_while_it_is_free() -> None:
    assert choose_ports([500, None], first=100, is_taken=lambda _: False) == [500, 100]


def test_a_taken_port_is_replaced_by_the_next_free_one() -> None:
    assert choose_ports([500], first=100, is_taken=lambda port: port in {500, 100, 101}) == [102]


def test_no_port_is_chosen_twice() -> None:
    assert choose_ports([None, 100, None], first=100, is_taken=lambda _: False) == [101, 100, 102]


def test_a_free_port_is_not_taken() -> None:
    assert not is_taken("127.0.0.1", find_port())


def test_nobody_gets_a_port_that_was_found_free_for_another() -> None:
    ports = [find_port() for _ in range(50)]

    assert len(set(ports)) == len(ports)
    assert set(ports) <= set(FREE_PORTS)
