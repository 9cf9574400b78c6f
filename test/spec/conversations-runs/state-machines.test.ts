import {
  admissionStatus,
  advanceRequest,
  type RequestEvent,
  type RequestState,
  requestTransitions,
} from "../../../plugins/src/conversations-runs/requests/request-state.ts";
import {
  advanceRun,
  type RunEvent,
  type RunStatus,
  runTransitions,
} from "../../../plugins/src/conversations-runs/runs/run-state.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const requestEvents: readonly RequestEvent[] = ["submit", "commit", "end", "retire", "forget"];
const runEvents: readonly RunEvent[] = [
  "turn-began",
  "turn-completed",
  "turn-interrupted",
  "turn-put-off",
  "turn-failed",
  "closed",
];
const keysOf = <K extends string>(table: Readonly<Record<K, unknown>>) => Object.keys(table) as K[];

/** Whatever happens; what cannot happen is not taken. */
function walk<S extends string, E extends string>(first: S, events: readonly E[], advance: (state: S, event: E) => S) {
  const taken: { readonly from: S; readonly event: E; readonly to: S }[] = [];
  let state = first;
  for (const event of events) {
    let next: S;
    try {
      next = advance(state, event);
    } catch (error) {
      expect(error).toBeInstanceOf(RangeError);
      continue;
    }
    taken.push({ from: state, event, to: next });
    state = next;
  }
  return { taken, state };
}

describe("the admission of a client request (3.4, open points 7)", () => {
  it("every state and every event is in the table, and leads to a state of the table", () => {
    const states = keysOf(requestTransitions);
    expect(states).toEqual(["absent", "reserved", "committed", "ended", "tombstone"]);
    const targets = states.flatMap((state) => Object.entries(requestTransitions[state]));
    expect([...new Set(targets.map(([event]) => event))].sort()).toEqual([...requestEvents].sort());
    expect(targets.filter(([, to]) => !states.includes(to))).toEqual([]);
  });

  it("in any order of events, a submission is executed once while it is remembered, and a commit is final", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...requestEvents), { maxLength: 60 }), (events) => {
        const { taken, state } = walk<RequestState, RequestEvent>("absent", events, advanceRequest);
        let [commits, wasCommitted] = [0, false];
        for (const { from, event, to } of taken) {
          if (event === "forget") [commits, wasCommitted] = [0, false];
          if (event === "commit") commits++;
          if (admissionStatus(to) === "committed") wasCommitted = true;
          // Only forgetting lets an ID be absent again, and only after its turn has ended.
          if (to === "absent") expect([from, event]).toEqual(["tombstone", "forget"]);
          else if (wasCommitted) expect(admissionStatus(to)).toBe("committed");
          expect(commits).toBeLessThanOrEqual(1);
          // A replay does not change the existing state.
          if (event === "submit" && from !== "absent") expect(to).toBe(from);
        }
        expect(keysOf(requestTransitions)).toContain(state);
      }),
      { numRuns: 2000 },
    );
  });

  it("every state is reached, and every one can be left for absent again", () => {
    const reach = (from: RequestState): Set<RequestState> => {
      const seen = new Set<RequestState>([from]);
      for (const state of seen) for (const to of Object.values(requestTransitions[state])) seen.add(to);
      return seen;
    };
    for (const state of keysOf(requestTransitions)) expect([...reach(state)].sort()).toEqual(keysOf(requestTransitions).sort());
  });

  it("what a client is told", () => {
    expect(keysOf(requestTransitions).map(admissionStatus)).toEqual([
      "absent",
      "reserved",
      "committed",
      "committed",
      "committed",
    ]);
  });
});

describe("a run (3.3)", () => {
  it("every state and every event is in the table, and leads to a state of the table", () => {
    const states = keysOf(runTransitions);
    expect([...states].sort()).toEqual(["completed", "failed", "idle", "running"]);
    const targets = states.flatMap((state) => Object.entries(runTransitions[state]));
    expect([...new Set(targets.map(([event]) => event))].sort()).toEqual([...runEvents].sort());
    expect(targets.filter(([, to]) => !states.includes(to))).toEqual([]);
  });

  it("is running between the beginning and the end of a turn and at no other time; completed takes no further turn", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...runEvents), { maxLength: 60 }), (events) => {
        const { taken } = walk<RunStatus, RunEvent>("idle", events, advanceRun);
        for (const { from, event, to } of taken) {
          expect(to === "running").toBe(event === "turn-began");
          if (from === "running") expect(event).toMatch(/^turn-(?:completed|interrupted|put-off|failed)$/);
          if (from === "completed") expect([event, to]).toEqual(["closed", "completed"]);
          // 3.3: an interrupted run can return to idle.
          if (event === "turn-interrupted" || event === "turn-put-off") expect(to).toBe("idle");
        }
      }),
      { numRuns: 2000 },
    );
  });
});
