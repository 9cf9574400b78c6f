import type { ChannelContract } from "../channel.ts";
import { definePort, type Port } from "../port.ts";
import type { Contract } from "../route.ts";

/** What one plugin of the app shows to the outside: data, of which documents are made. */
export interface Area {
  /** The plugin's. */
  readonly name: string;
  /** What it is, in a sentence. */
  readonly summary?: string | undefined;
  readonly contract: Contract;
  readonly channels: Readonly<Record<string, ChannelContract>>;
}

/** All areas of the app, in the order of its plugins. The app itself fills this port. */
export const areas: Port<readonly Area[]> = definePort<readonly Area[]>("areas");
