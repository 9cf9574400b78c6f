/** The reason why a function of the language refused. The message quotes no value. */
export class Refused extends Error {
  override readonly name = "Refused";
}
