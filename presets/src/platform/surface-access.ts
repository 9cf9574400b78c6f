import { type Given, type Guard, type Needs, ports } from "@portico/core";
import { serviceAccess } from "@portico/plugins/workflow-service/access";
import { serviceGuard } from "@portico/plugins/workflow-service/guards";
import { instanceGuard } from "./instance-guard.ts";

/** What a page that is no area's needs to stand on a surface, for those who may call it. */
export interface SurfaceAccess<N extends Needs> {
  readonly surface: string;
  /** The scheme's name, as the area calls it. */
  readonly auth: string;
  readonly needs: N;
  readonly guard: (given: Given<N>) => Guard<unknown>;
}

/** The agent service, for whoever has one of its tokens. */
export const agentSurface: SurfaceAccess<{ readonly identity: typeof ports.identity }> = {
  surface: "agent",
  auth: "instance",
  needs: { identity: ports.identity },
  guard: ({ identity }) => instanceGuard(identity),
};

/** The workflow service, for whoever has its token. */
export const workflowSurface: SurfaceAccess<{ readonly access: typeof serviceAccess }> = {
  surface: "workflow",
  auth: "service",
  needs: { access: serviceAccess },
  guard: ({ access }) => serviceGuard(access),
};
