// An old path of this package. It goes in the next minor version.
export { listenersContract } from "@portico/plugins/listeners/contract";

// Once in a process. Browsers have no warnings.
globalThis.process?.emitWarning?.(
  "portico/listeners-contract: import @portico/plugins/listeners/contract instead",
  "DeprecationWarning",
  "PORTICO_LISTENERS_CONTRACT_PATH",
);
