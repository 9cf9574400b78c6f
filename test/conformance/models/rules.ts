/** What an adapter of models must do: the message of an expectation that fails. */
export const RULES = {
  answered: "The status of the upstream is the status of the answer, and no status is an error",
  bodyReleased: "The adapter destroys the stream of a request that fails or is aborted",
  bytes: "The body of an answer is a Readable of bytes",
  discreet: "The message of an error names no address, no credential and no secret header",
  fails: (name: string) => `The call, or reading its answer, fails with ${name}`,
  headers: "An answer has its headers by lowercase name, as the upstream sent them",
  listeners: "The adapter removes its listeners from a signal when the call has ended",
  models: "The list of models has at least one name, and each name once",
  named: "A provider has an id and a type",
  redacts: "`redact` replaces only the credential and secret headers",
  requests: (count: number) => `The upstream got ${count === 1 ? "1 request" : `${count} requests`}`,
  servesOn: "A call after a failed or abandoned call is answered",
  signalReason: "A call whose signal aborts fails with the reason of the signal",
  stillOpen: "The call still waits: its timeout has not passed on the clock of the adapter",
  upstreamEnded: "The adapter ends the call to the upstream at once when its caller leaves or a timeout has passed",
} as const;
