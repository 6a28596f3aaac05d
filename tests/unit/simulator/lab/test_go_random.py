"""Go's random numbers: the values are those that Go 1.19 prints."""

from roost.simulator.lab.go_random import GoRandom, base_table


def test_base_table_begins_with_the_published_numbers():
    table = base_table()
    assert len(table) == 607
    assert [word & (1 << 63) - 1 for word in table[:2]] == [5041579894721019882, 4646389086726545243]


def test_numbers_of_a_seed():
    random = GoRandom(1)
    assert [random.intn(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]


def test_powers_of_two_use_the_low_bits():
    first, second = GoRandom(3), GoRandom(3)
    assert [first.intn(64) for _ in range(20)] == [second.int63() >> 32 & 63 for _ in range(20)]


def test_the_same_seed_gives_the_same_order():
    def draw(seed):
        items = list(range(50))
        random = GoRandom(seed)
        random.shuffle(items)
        return items, random.perm(50)

    items, order = draw(42)
    assert sorted(items) == sorted(order) == list(range(50))
    assert draw(42) == (items, order)
    assert draw(43) != (items, order)
    assert draw(0) == draw((1 << 31) - 1)  # Go maps both to one state.
