import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  advanceEndpoint,
  type EndpointEvent,
  type EndpointState,
  endpointState,
} from "../../../plugins/src/agent-webhook/endpoint-state.ts";

type Outcome = string;

const events: Readonly<Record<string, EndpointEvent>> = {
  "saves a new event": { type: "event-saved", isNew: true },
  "saves an event again": { type: "event-saved", isNew: false },
  "deletes an event": { type: "event-deleted" },
  enables: { type: "enable" },
  pauses: { type: "pause" },
  "rotates the secret": { type: "secret-rotated" },
};

const IMPOSSIBLE = "impossible";
const REFUSED = "webhook_events_required";

/** Every state with none, one and more events, and what each of `events` makes of it, in their order; `*` where a secret is made. */
const table: Readonly<Record<string, readonly Outcome[]>> = {
  "paused, 0 events, no secret": [
    ...["enabled, 1 events, secret *", IMPOSSIBLE, IMPOSSIBLE],
    ...[REFUSED, "paused, 0 events, no secret", "paused, 0 events, secret *"],
  ],
  "paused, 0 events, secret": [
    ...["enabled, 1 events, secret", IMPOSSIBLE, IMPOSSIBLE],
    ...[REFUSED, "paused, 0 events, secret", "paused, 0 events, secret *"],
  ],
  "paused, 1 events, no secret": [
    ...["enabled, 2 events, secret *", "enabled, 1 events, secret *", "paused, 0 events, no secret"],
    ...[REFUSED, "paused, 1 events, no secret", "paused, 1 events, secret *"],
  ],
  "paused, 1 events, secret": [
    ...["enabled, 2 events, secret", "enabled, 1 events, secret", "paused, 0 events, secret"],
    ...["enabled, 1 events, secret", "paused, 1 events, secret", "paused, 1 events, secret *"],
  ],
  "paused, 2 events, no secret": [
    ...["enabled, 3 events, secret *", "enabled, 2 events, secret *", "paused, 1 events, no secret"],
    ...[REFUSED, "paused, 2 events, no secret", "paused, 2 events, secret *"],
  ],
  "paused, 2 events, secret": [
    ...["enabled, 3 events, secret", "enabled, 2 events, secret", "paused, 1 events, secret"],
    ...["enabled, 2 events, secret", "paused, 2 events, secret", "paused, 2 events, secret *"],
  ],
  "enabled, 1 events, no secret": [
    ...["enabled, 2 events, secret *", "enabled, 1 events, secret *", "paused, 0 events, no secret"],
    ...[REFUSED, "paused, 1 events, no secret", "enabled, 1 events, secret *"],
  ],
  "enabled, 1 events, secret": [
    ...["enabled, 2 events, secret", "enabled, 1 events, secret", "paused, 0 events, secret"],
    ...["enabled, 1 events, secret", "paused, 1 events, secret", "enabled, 1 events, secret *"],
  ],
  "enabled, 2 events, no secret": [
    ...["enabled, 3 events, secret *", "enabled, 2 events, secret *", "enabled, 1 events, no secret"],
    ...[REFUSED, "paused, 2 events, no secret", "enabled, 2 events, secret *"],
  ],
  "enabled, 2 events, secret": [
    ...["enabled, 3 events, secret", "enabled, 2 events, secret", "enabled, 1 events, secret"],
    ...["enabled, 2 events, secret", "paused, 2 events, secret", "enabled, 2 events, secret *"],
  ],
};

describe("the webhook endpoint of an agent (3.1)", () => {
  describe.each(Object.entries(table))("%s", (state, outcomes) => {
    it.each(Object.keys(events).map((name, index) => [name, outcomes[index]!] as const))(
      "whose owner %s: %s",
      (name, outcome) => {
        expect(outcomeOf(toState(state), events[name]!)).toBe(outcome);
      },
    );
  });

  it("begins paused, and the first event enables it and makes the secret", () => {
    const never = endpointState({ enabled: false, events: 0, hasSecret: false });
    expect(toText(never)).toBe("paused, 0 events, no secret");
    expect(outcomeOf(never, { type: "event-saved", isNew: true })).toBe("enabled, 1 events, secret *");
  });

  it("is read as stored, but counts as paused if a person enabled it without events", () => {
    const states = [false, true].flatMap((enabled) =>
      [0, 1, 2].flatMap((count) =>
        [false, true].map((hasSecret) => toText(endpointState({ enabled, events: count, hasSecret }))),
      ),
    );
    expect(states).toEqual([
      ...["paused, 0 events, no secret", "paused, 0 events, secret", "paused, 1 events, no secret", "paused, 1 events, secret"],
      ...["paused, 2 events, no secret", "paused, 2 events, secret", "paused, 0 events, no secret", "paused, 0 events, secret"],
      ...[
        "enabled, 1 events, no secret",
        "enabled, 1 events, secret",
        "enabled, 2 events, no secret",
        "enabled, 2 events, secret",
      ],
    ]);
  });

  it("after any owner's actions, from any state: if enabled it has an event, and a secret is replaced but never lost", () => {
    const facts = fc.record({ enabled: fc.boolean(), events: fc.nat(2), hasSecret: fc.boolean() });
    const kind = fc.constantFrom("save", "save", "delete", "enable", "pause", "rotate");
    const asked = fc.array(fc.tuple(kind, fc.constantFrom("a", "b", "c")), { maxLength: 40 });
    fc.assert(
      fc.property(facts, asked, (first, asked) => {
        // The same done by hand: names, and whether there is a secret.
        const known = new Set(["a", "b"].slice(0, first.events));
        let [state, hasSecret] = [endpointState(first), first.hasSecret];
        for (const [kind, name] of asked) {
          if (kind === "delete" && !known.has(name)) continue;
          const step = advanceEndpoint(state, toEvent(kind, !known.has(name)));
          const mayEnable = known.size > 0 && hasSecret;
          expect("refused" in step).toBe(kind === "enable" && !mayEnable);
          if ("refused" in step) continue;
          if (kind === "save") known.add(name);
          if (kind === "delete") known.delete(name);
          expect(step.makesSecret).toBe(kind === "rotate" || (kind === "save" && !hasSecret));
          if (step.makesSecret) hasSecret = true;
          if (kind === "save" || kind === "enable") expect(step.state.status).toBe("enabled");
          if (kind === "pause" || known.size === 0) expect(step.state.status).toBe("paused");
          expect(step.state).toMatchObject({ events: known.size, hasSecret });
          state = step.state;
        }
      }),
      { numRuns: 2000 },
    );
  });
});

function outcomeOf(state: EndpointState, event: EndpointEvent): Outcome {
  try {
    const step = advanceEndpoint(state, event);
    return "refused" in step ? step.refused : toText(step.state) + (step.makesSecret ? " *" : "");
  } catch (error) {
    expect(error).toBeInstanceOf(RangeError);
    return IMPOSSIBLE;
  }
}

function toEvent(kind: string, isNew: boolean): EndpointEvent {
  if (kind === "save") return { type: "event-saved", isNew };
  const types = { delete: "event-deleted", enable: "enable", pause: "pause", rotate: "secret-rotated" } as const;
  return { type: types[kind as keyof typeof types] };
}

function toText({ status, events, hasSecret }: EndpointState): string {
  return `${status}, ${events} events, ${hasSecret ? "secret" : "no secret"}`;
}

function toState(text: string): EndpointState {
  const [status, events, secret] = text.split(", ");
  return { status: status as EndpointState["status"], events: Number.parseInt(events!, 10), hasSecret: secret === "secret" };
}
