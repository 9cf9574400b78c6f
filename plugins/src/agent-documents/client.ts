// What programs that edit agents share with the service. It runs in browsers.
export { AGENT_TEXT_BYTES } from "./limits.ts";
