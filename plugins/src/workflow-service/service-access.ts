import { defineAdapter, definePort, type Port, ports, type Secret } from "@portico/core";
import type { FindToken } from "./config.ts";

/** Access to the workflow service: callers with its token (specification 5). */
export interface ServiceAccess {
  /** Undefined while no token is set. Compares in constant time. */
  allows(presented: string): boolean | undefined;
}

/** The port of access to the workflow service; `tokenAccess` fills it. */
export const serviceAccess: Port<ServiceAccess> = definePort<ServiceAccess>("workflow-service/access");

/** Options of `tokenAccess`. */
export interface TokenAccessOptions {
  /** The token, or a function that finds it. Without a token, the service answers every call with 503, `workflow_service_not_initialized`. */
  readonly token?: Secret | FindToken | undefined;
}

/** Access with one token. After opening, only its digest is kept. */
export const tokenAccess = defineAdapter({
  name: "workflow-service/token-access",
  port: serviceAccess,
  needs: { secrets: ports.secrets },
  async open({ secrets }, { token }: TokenAccessOptions): Promise<ServiceAccess> {
    const found = typeof token === "function" ? await token(secrets) : token;
    const digest = found && secrets.digest(found.reveal());
    return { allows: (presented) => (digest === undefined ? undefined : secrets.matches(presented, digest)) };
  },
});
