import { collectCases, r } from "./cases.ts";

const { cases, weakens } = collectCases();
export const RUBY = cases;

const RB =
  'require "spec_helper"\n\nRSpec.describe "add" do\n  it "adds" do\n    expect(add(1, 2)).to eq 3\n  end\n\n  it "adds more" do\n    expect(add(2, 2)).to eq 4\n  end\nend\n';
const rb = "spec/add_spec.rb";
weakens("rb xit", rb, RB, r('it "adds more"', 'xit "adds more"'));
weakens("rb fit", rb, RB, r('it "adds"', 'fit "adds"'));
weakens("rb focus", rb, RB, r('it "adds" do', 'it "adds", :focus do'));
weakens("rb skip meta", rb, RB, r('it "adds" do', 'it "adds", skip: "later" do'));
weakens("rb skip sym", rb, RB, r('it "adds" do', 'it "adds", :skip do'));
weakens("rb pending", rb, RB, r('it "adds" do\n', 'it "adds" do\n    pending "x"\n'));
weakens("rb removed", rb, RB, r(/ {2}it "adds more" do\n.*\n {2}end\n/, ""));
weakens("rb begin/end", rb, RB, (s) =>
  s.replace('  it "adds more"', '=begin\n  it "adds more"').replace(/end\n$/, "=end\nend\n"),
);
weakens("rb __END__", rb, RB, r("RSpec.describe", "__END__\nRSpec.describe"));
weakens("rb if false", rb, RB, (s) =>
  s.replace('  it "adds more"', '  if false\n  it "adds more"').replace(/end\n$/, "  end\nend\n"),
);
weakens("rb xdescribe", rb, RB, r("RSpec.describe", "RSpec.xdescribe"));
weakens(
  "rb minitest",
  "test/test_add.rb",
  "class TestAdd < Minitest::Test\n  def test_a\n    assert_equal 1, 1\n  end\nend\n",
  r("  def test_a", "  def a_test"),
);
const EX =
  'defmodule AddTest do\n  use ExUnit.Case\n\n  test "adds" do\n    assert add(1, 2) == 3\n  end\n\n  test "more" do\n    assert add(1, 3) == 4\n  end\nend\n';
weakens("ex tag skip", "test/add_test.exs", EX, r('  test "more"', '  @tag :skip\n  test "more"'));
weakens("ex moduletag", "test/add_test.exs", EX, r("  use ExUnit.Case\n", "  use ExUnit.Case\n  @moduletag skip: true\n"));
weakens("ex removed", "test/add_test.exs", EX, r(/ {2}test "more" do\n.*\n {2}end\n/, ""));
weakens("ex exclude", "test/test_helper.exs", "ExUnit.start()\n", r("start()", "start(exclude: [:slow])"));
