from annotation.readers.problems import Problem, Problems, excerpt


def problem(line: int | None = 12, column: str | None = "rating_value") -> Problem:
    return Problem("ratings.csv", line, column, excerpt("2.9E+15"), "a number", "not_a_number")


def test_a_problem_is_a_sentence_with_its_place() -> None:
    assert str(problem()) == "ratings.csv, line 12, rating_value: found “2.9E+15”; expected a number."
    assert str(problem(None, None)).startswith("ratings.csv: found")
    assert problem().as_dict()["sentence"] == str(problem())


def test_the_first_are_kept_and_all_are_counted() -> None:
    problems = Problems(limit=2)
    assert not problems
    for line in range(5):
        problems.refuse(problem(line))
    problems.add(problem(None))
    assert len(problems) == 6
    assert problems.refused == 5
    assert [each.line for each in problems] == [0, 1]
    assert problems.sentences()[-1] == "... and 4 more."
    assert problems.codes == {"not_a_number": 6}


def test_invisible_characters_are_spelled_out_and_long_values_cut() -> None:
    assert excerpt("a\u200fb\n") == "“a\\u200fb\\n”"
    assert excerpt("x" * 500) == f"“{'x' * 120}…”"
    assert excerpt("") == "nothing"
    assert excerpt(2.5) == "“2.5”"


def test_problems_of_one_kind_are_counted_after_the_first_three() -> None:
    problems = Problems(limit=6)
    for line in range(5):
        problems.refuse(problem(line))
    problems.add(Problem("ratings.csv", 9, "rater", "nothing", "the rater", "missing"))
    for line in range(4):
        problems.refuse(problem(line, "item"))
    assert [sentence[:26] for sentence in problems.grouped_sentences()] == [
        *["ratings.csv, line 0, ratin", "ratings.csv, line 1, ratin", "ratings.csv, line 2, ratin"],
        *["... and 2 more like the la", "ratings.csv, line 9, rater", "... and 4 more."],
    ]
