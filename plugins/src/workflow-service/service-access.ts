import { defineAdapter, definePort, type Port, ports, type Secret } from "@portico/core";

/** Who may call the workflow service: whoever has its token (specification 5). */
export interface ServiceAccess {
  /** Undefined while no token is set. Compares in constant time. */
  allows(presented: string): boolean | undefined;
}

export const serviceAccess: Port<ServiceAccess> = definePort<ServiceAccess>("workflow-service/access");

export interface TokenAccessOptions {
  /** Without one the service answers every call with 503, `workflow_service_not_initialized`. */
  readonly token?: Secret | undefined;
}

/** Access by one token. After opening only its digest is kept. */
export const tokenAccess = defineAdapter({
  name: "workflow-service/token-access",
  port: serviceAccess,
  needs: { secrets: ports.secrets },
  open({ secrets }, { token }: TokenAccessOptions): ServiceAccess {
    const digest = token && secrets.digest(token.reveal());
    return { allows: (presented) => (digest === undefined ? undefined : secrets.matches(presented, digest)) };
  },
});
