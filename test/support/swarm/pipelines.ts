/** One engineer whose work one reviewer approves: in place, or on branches. */
export const IN_PLACE = `
pipeline:
  - phase: implement
    parallel: false
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]
`;
export const ON_BRANCH = IN_PLACE.replace("false", "true");
