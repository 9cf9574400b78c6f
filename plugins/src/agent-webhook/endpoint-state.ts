/** Whether an agent's webhook takes triggers (specification 3.1). One that was never configured is paused, without events. */
export interface EndpointState {
  readonly status: "paused" | "enabled";
  /** How many are configured; at least one where the endpoint is enabled. */
  readonly events: number;
  readonly hasSecret: boolean;
}

/** What the owner asks for. `event-saved` says whether the event is new, `event-deleted` is of one that there is. */
export type EndpointEvent =
  | { readonly type: "event-saved"; readonly isNew: boolean }
  | { readonly type: "event-deleted" }
  | { readonly type: "enable" }
  | { readonly type: "pause" }
  | { readonly type: "secret-rotated" };

/** The state after an event, and whether a secret is to be made for it; or by which error it is refused, and everything stays. */
export type EndpointStep =
  | { readonly state: EndpointState; readonly makesSecret: boolean }
  | { readonly refused: "webhook_events_required" };

/** What stands in the places where it is kept. People edit `agent.json`: one that is enabled there and has no events is paused. */
export function endpointState(facts: {
  readonly enabled: boolean;
  readonly events: number;
  readonly hasSecret: boolean;
}): EndpointState {
  const { enabled, events, hasSecret } = facts;
  return { status: enabled && events > 0 ? "enabled" : "paused", events, hasSecret };
}

/** All transitions (specification 3.1). Throws RangeError for what cannot happen: replacing or deleting where there is no event. */
export function advanceEndpoint(state: EndpointState, event: EndpointEvent): EndpointStep {
  switch (event.type) {
    case "event-saved": {
      if (!event.isNew) assertEvents(state, event);
      const events = state.events + (event.isNew ? 1 : 0);
      return { state: { status: "enabled", events, hasSecret: true }, makesSecret: !state.hasSecret };
    }
    case "event-deleted": {
      assertEvents(state, event);
      const events = state.events - 1;
      return keepSecret({ ...state, status: events > 0 ? state.status : "paused", events });
    }
    case "enable":
      // 7.3: also one that is enabled already, which a local instance may be without a secret.
      if (state.events === 0 || !state.hasSecret) return { refused: "webhook_events_required" };
      return keepSecret({ ...state, status: "enabled" });
    case "pause":
      return keepSecret({ ...state, status: "paused" });
    case "secret-rotated":
      return { state: { ...state, hasSecret: true }, makesSecret: true };
  }
}

function keepSecret(state: EndpointState): EndpointStep {
  return { state, makesSecret: false };
}

function assertEvents(state: EndpointState, { type }: EndpointEvent): void {
  if (state.events === 0) throw new RangeError(`A webhook without events cannot take ${type} of one of them`);
}
