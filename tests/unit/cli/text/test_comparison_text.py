import msgspec

from roost.cli.text.comparison_text import to_text
from roost.simulator.compare import build_figures, compare
from tests.unit.simulator.comparisons import generated_source, policies, policy_runs


def test_comparison_text_has_a_column_per_policy_and_a_legend():
    comparison = compare(generated_source(), policies(), seeds=(1, 2))
    runs = [policy_runs(8_000, 8_001), policy_runs(7_000, 7_001, name="b")]
    text = to_text(
        msgspec.structs.replace(
            comparison,
            workload="pods",
            notes=("a note",),
            jobs=2,
            runs_found=3,
            policies=runs,
            figures=build_figures(runs, is_sequential=False)[:3],
        )
    )
    assert text == (
        "comparison of pods\n"
        "  (a note)\n"
        "  (mean and minimum..maximum of 2 seeds: 1, 2)\n"
        "  (* is better than the others, with every seed)\n"
        "  (up to 2 runs at a time, which disturb each other's durations)\n"
        "  (3 of 4 runs were finished earlier)\n"
        "\n"
        "                                 a                         b\n"
        "  requests                   8,152                     8,152\n"
        "  placed    8,000.5 (8,000..8,001) *  7,000.5 (7,000..7,001)\n"
        "  refused         151.5 (151..152) *  1,151.5 (1,151..1,152)\n"
    )
