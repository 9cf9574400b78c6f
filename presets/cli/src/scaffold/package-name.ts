import { platformSchema } from "@portico/presets/settings/platform";
import { PRESET_NAMES } from "../preset-table.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";

/** A name in all spellings that templates use. */
export interface PackageName {
  /** `tea-house`: files, packages, surfaces. */
  readonly kebab: string;
  /** `teaHouse`: values and settings. */
  readonly camel: string;
  /** `TeaHouse`: types. */
  readonly pascal: string;
  /** `TEA_HOUSE`: environment variables. */
  readonly constant: string;
}

const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const LONGEST = 50;

/** Throws CommandFailed (64) for an invalid name, and for names that the platform itself uses. */
export function packageName(kebab: string): PackageName {
  if (!NAME.test(kebab) || kebab.length > LONGEST) {
    throw new CommandFailed(
      `${JSON.stringify(kebab)} is not a valid name: use lowercase letters, digits and single hyphens, start with a letter, and use at most ${LONGEST} characters`,
      EXIT.usage,
    );
  }
  const words = kebab.split("-");
  const pascal = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
  const camel = pascal[0]!.toLowerCase() + pascal.slice(1);
  if (Object.hasOwn(platformSchema.entries, camel) || PRESET_NAMES.includes(kebab))
    throw new CommandFailed(`"${kebab}" is a reserved name of the platform: choose another name`, EXIT.usage);
  return { kebab, camel, pascal, constant: words.join("_").toUpperCase() };
}
