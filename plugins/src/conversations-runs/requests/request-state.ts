/** The registry's state of one submission. `absent`: it never arrived, or has expired. */
export type RequestState = "absent" | "reserved" | "committed" | "ended" | "tombstone";

/** The events of a submission. `submit` is each time that a client sends it. */
export type RequestEvent = "submit" | "commit" | "end" | "retire" | "forget";

/** The state that a client sees (specification 3.4). `unknown` is not a state of a request: the registry cannot answer. */
export type AdmissionStatus = "committed" | "reserved" | "absent" | "unknown";

/**
 * All transitions (open points 7). Other transitions are impossible. A submission is executed once, because `submit` leaves only `absent`,
 * and a committed state never goes back.
 */
export const requestTransitions: Readonly<Record<RequestState, Readonly<Partial<Record<RequestEvent, RequestState>>>>> = {
  absent: { submit: "reserved" },
  reserved: { submit: "reserved", commit: "committed" },
  committed: { submit: "committed", end: "ended" },
  ended: { submit: "ended", retire: "tombstone" },
  tombstone: { submit: "tombstone", forget: "absent" },
};

/** The state after an event. Throws RangeError for an impossible transition. */
export function advanceRequest(state: RequestState, event: RequestEvent): RequestState {
  const next = requestTransitions[state][event];
  if (next === undefined) throw new RangeError(`A request that is ${state} cannot ${event}`);
  return next;
}

/** The answer of a lookup for a state (specification 3.4). */
export function admissionStatus(state: RequestState): Exclude<AdmissionStatus, "unknown"> {
  if (state === "absent" || state === "reserved") return state;
  return "committed";
}
