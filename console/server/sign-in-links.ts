import { auditWriter, CREDENTIAL_PREFIXES, ports, type Secret } from "@portico/core";

/** How long a link can be used: long enough to copy it to another device. */
const LINK_MS = 10 * 60 * 1000;

/** A link that was just made. */
export interface SignInLink {
  /** Relative to the agent service. The code is in the fragment, which browsers send to no server and write into no `Referer`. */
  readonly url: string;
  /** ISO 8601. */
  readonly expiresAt: string;
}

/** Makes sign-in links, and uses up their codes. */
export interface SignInLinks {
  /** A new link. It is durable when the call resolves. `by` is who makes it, for the audit; default: the instance. */
  issue(by?: ports.AuditActor): Promise<SignInLink>;
  /** Whether the code belongs to a link that was not used and has not expired. Does not use it up. */
  isValid(code: string): Promise<boolean>;
  /**
   * Whether the code belongs to a link that was not used and has not expired. Uses it up: only one of several callers gets true. `signedIn`
   * is recorded in the audit together with the use.
   */
  use(code: string, signedIn?: ports.AuditFact): Promise<boolean>;
}

interface LinkRecord {
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Codes of links in the port `records`, for all processes of an instance. Only their SHA-256 is stored. Functions throw RecordsUnavailable. */
export function createSignInLinks({
  records,
  secrets,
  clock,
  audit: given,
}: {
  readonly records: ports.Records;
  readonly secrets: ports.Secrets;
  readonly clock: ports.Clock;
  readonly audit?: ports.Audit | undefined;
}): SignInLinks {
  const audit = auditWriter(given, records);
  const links = records.collection<LinkRecord>({ name: "sign-in-links", indexes: { byEnd: ["expiresAt"] } });

  async function find(code: string): Promise<ports.Stored<LinkRecord> | undefined> {
    const found = await links.get(secrets.digest(code));
    return found && secrets.matches(code, found.id) ? found : undefined;
  }

  async function sweep(): Promise<void> {
    const { items } = await links.query({ order: { by: "expiresAt", direction: "ascending" }, limit: SWEPT_AT_ONCE });
    const now = clock.now();
    await Promise.all(items.filter(({ value }) => value.expiresAt <= now).map(({ id }) => links.remove(id)));
  }

  return {
    async issue(by = { role: "instance" }) {
      await sweep();
      const code = secrets.create(CREDENTIAL_PREFIXES.signInCode);
      const expiresAt = Math.floor(clock.now() + LINK_MS);
      const write = links.write.put(secrets.digest(code.reveal()), { expiresAt }, "absent");
      await audit.record({ action: "sign-in-link.issue", who: by }, [write]);
      return { url: linkTo(code), expiresAt: new Date(expiresAt).toISOString() };
    },
    async isValid(code) {
      const found = await find(code);
      return found !== undefined && found.value.expiresAt > clock.now();
    },
    async use(code, signedIn) {
      const found = await find(code);
      if (!found) return false;
      try {
        const isValid = found.value.expiresAt > clock.now();
        const write = links.write.remove(found.id, found.version);
        await (isValid && signedIn ? audit.record(signedIn, [write]) : records.batch([write]));
        return isValid;
      } catch (error) {
        // Another caller used it meanwhile.
        if (error instanceof ports.RecordConflict) return false;
        throw error;
      }
    },
  };
}

const SWEPT_AT_ONCE = 200;

function linkTo(code: Secret): string {
  return `/#/sign-in/${code.reveal()}`;
}
