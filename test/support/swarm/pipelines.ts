/** One engineer and one reviewer who approves the work: in the checkout itself, or on branches. */
export const IN_PLACE = `
pipeline:
  - phase: implement
    parallel: false
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]
`;
export const ON_BRANCH = IN_PLACE.replace("false", "true");
