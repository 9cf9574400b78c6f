import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ancestorsOf, orderNodes } from "../../../../plugins/src/workflow-service/definition/order-nodes.ts";

/** Needs among a few nodes, written in any order. */
const anyNeeds = fc.nat({ max: 12 }).chain((count) => {
  const ids = Array.from({ length: count }, (_, index) => `n${index}`);
  const needs = count === 0 ? fc.constant([]) : fc.array(fc.subarray(ids), { minLength: count, maxLength: count });
  return needs.map((lists) => new Map(ids.map((id, index) => [id, lists[index] ?? []])));
});

const isBehind = (id: string, needs: ReadonlyMap<string, readonly string[]>) => ancestorsOf(id, needs).has(id);

describe("nodes are ordered", () => {
  it("so that each comes after its needs; cycles are reported", () => {
    fc.assert(
      fc.property(anyNeeds, (needs) => {
        const ordered = orderNodes(needs);
        const hasCircle = [...needs.keys()].some((id) => isBehind(id, needs));
        expect("circles" in ordered).toBe(hasCircle);
        if ("circles" in ordered) {
          for (const circle of ordered.circles) {
            circle.forEach((id, index) => expect(needs.get(id)).toContain(circle[(index + 1) % circle.length]));
          }
          return;
        }
        expect(ordered.order.toSorted()).toEqual([...needs.keys()].toSorted());
        const place = new Map(ordered.order.map((id, index) => [id, index]));
        for (const [id, list] of needs) for (const need of list) expect(place.get(need)!).toBeLessThan(place.get(id)!);
      }),
    );
  });

  it("as they are written where that can be", () => {
    expect(
      orderNodes(
        new Map([
          ["b", []],
          ["a", []],
          ["c", ["a"]],
        ]),
      ),
    ).toEqual({ order: ["b", "a", "c"] });
    expect(
      orderNodes(
        new Map([
          ["b", ["c"]],
          ["a", []],
          ["c", []],
        ]),
      ),
    ).toEqual({ order: ["c", "b", "a"] });
  });

  it("in chains as long as there may be nodes", () => {
    const chain = new Map(Array.from({ length: 2000 }, (_, index) => [`n${index}`, index < 1999 ? [`n${index + 1}`] : []]));
    const ordered = orderNodes(chain);
    expect("order" in ordered && ordered.order[0]).toBe("n1999");
  });
});
