/** What the registry knows of one submission. `absent` is what it never saw, or was allowed to forget. */
export type RequestState = "absent" | "reserved" | "committed" | "ended" | "tombstone";

/** What happens to a submission. `submit` is each time that a client sends it. */
export type RequestEvent = "submit" | "commit" | "end" | "retire" | "forget";

/** What a client is told (specification 3.4). `unknown` is no state of a request, but of a registry that cannot tell. */
export type AdmissionStatus = "committed" | "reserved" | "absent" | "unknown";

/**
 * All transitions (open points 7). What is not here cannot happen: a submission is executed once, because only `absent` is left by
 * `submit`, and what was committed never becomes less.
 */
export const requestTransitions: Readonly<Record<RequestState, Readonly<Partial<Record<RequestEvent, RequestState>>>>> = {
  absent: { submit: "reserved" },
  reserved: { submit: "reserved", commit: "committed" },
  committed: { submit: "committed", end: "ended" },
  ended: { submit: "ended", retire: "tombstone" },
  tombstone: { submit: "tombstone", forget: "absent" },
};

/** The state after an event. Throws RangeError for what cannot happen. */
export function advanceRequest(state: RequestState, event: RequestEvent): RequestState {
  const next = requestTransitions[state][event];
  if (next === undefined) throw new RangeError(`A request that is ${state} cannot ${event}`);
  return next;
}

/** What a lookup answers for a state (specification 3.4). */
export function admissionStatus(state: RequestState): Exclude<AdmissionStatus, "unknown"> {
  if (state === "absent" || state === "reserved") return state;
  return "committed";
}
