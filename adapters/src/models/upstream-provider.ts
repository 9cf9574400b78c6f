/** Providers behind HTTP for adapters of other packages: services with addresses, bodies and credentials of their own. */
export { openHttpProvider } from "./http/http-provider.ts";
export { type CredentialSource, createKnownSecrets, type RequestHeaders, type UnsignedRequest } from "./http/credentials.ts";
export { readCall, type WholeCall } from "./http/read-call.ts";
export { createRenewal, type Ending, type Renewal } from "./http/renewal.ts";
