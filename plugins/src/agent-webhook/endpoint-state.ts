/** Whether an agent's webhook accepts triggers (specification 3.1). Without a configuration, it is paused and has no events. */
export interface EndpointState {
  readonly status: "paused" | "enabled";
  /** Number of configured events; at least one if the endpoint is enabled. */
  readonly events: number;
  readonly hasSecret: boolean;
}

/** An action of the owner. `event-saved` says whether the event is new. `event-deleted` is only for existing events. */
export type EndpointEvent =
  | { readonly type: "event-saved"; readonly isNew: boolean }
  | { readonly type: "event-deleted" }
  | { readonly type: "enable" }
  | { readonly type: "pause" }
  | { readonly type: "secret-rotated" };

/** The state after an action, and whether it needs a new secret; or the error that refuses the action, which then changes nothing. */
export type EndpointStep =
  | { readonly state: EndpointState; readonly makesSecret: boolean }
  | { readonly refused: "webhook_events_required" };

/** The state that is stored. People edit `agent.json`: an endpoint that is enabled there but has no events counts as paused. */
export function endpointState(facts: {
  readonly enabled: boolean;
  readonly events: number;
  readonly hasSecret: boolean;
}): EndpointState {
  const { enabled, events, hasSecret } = facts;
  return { status: enabled && events > 0 ? "enabled" : "paused", events, hasSecret };
}

/** All transitions (specification 3.1). Throws RangeError for impossible actions: replacing or deleting an event if the endpoint has no events. */
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
      // 7.3: this also refuses an endpoint that is already enabled without a secret, which a local instance allows.
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
