import type { ChannelContract } from "../grammar/channel.ts";
import type { Security } from "../derive/security-schemes.ts";
import { definePort, type Port } from "../grammar/port.ts";
import type { Contract } from "../grammar/contract.ts";

/** The public description of one plugin of the app. Pure data: documents are made from it. */
export interface Area {
  /** Name of the plugin. */
  readonly name: string;
  /** One sentence about the area. */
  readonly summary?: string | undefined;
  readonly contract: Contract;
  readonly channels: Readonly<Record<string, ChannelContract>>;
  /** How callers present the credential of each `auth` scheme, if the plugin declares it. */
  readonly security: Security;
  /** What clients can do because of this area. */
  readonly capabilities: readonly string[];
}

/** All areas of the app, in the order of its plugins. The app itself fills this port. */
export const areas: Port<readonly Area[]> = definePort<readonly Area[]>("areas");
