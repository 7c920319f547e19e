import { expect, test } from "vitest";
import { pageOf } from "../../../src/channels/http/shapes.ts";

const numbers = (count: number) => (limit: number) => Array.from({ length: Math.min(count, limit) }, (_, index) => index);

test.each([
  [0, { items: [] }],
  [2, { items: [0, 1] }],
  [3, { items: [0, 1, 2] }],
  [4, { items: [0, 1, 2], next: "2" }],
])("of %i things a page of three says that there is more only where there is", (count, page) => {
  expect(pageOf(3, numbers(count), String)).toEqual(page);
});
