import type { Secret } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";
import type { TokenOf } from "./own-token.ts";
import type { ServedProvider } from "./provider-choice.ts";

/** Surface name to URL. Ports may be assigned long after a preset was built: it is asked each time anew. */
export type Listeners = () => Readonly<Record<string, string>>;

/** What a platform preset is built from; `T` has the keys of a preset of one's own beside the platform's. */
export interface PlatformOptions<T extends PlatformSettings = PlatformSettings> {
  readonly settings: T;
  /** From `chooseProviders`. */
  readonly providers: readonly ServedProvider[];
  /** Whether requests should come in now; default: always. */
  readonly isReady?: (() => boolean) | undefined;
  /** Where each surface of this process is reached, by surface name, as far as something listens; default: not known. */
  readonly listeners?: Listeners | undefined;
  /** Called with a token that was made just now, to show it once, and with whose it is. */
  readonly onTokenMade?: ((token: Secret, of: TokenOf) => void) | undefined;
}
