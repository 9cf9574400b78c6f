/**
 * How the search of the site ranks, over the defaults of VitePress. The page gets the functions as text, so they use nothing from outside.
 * Readers type whole questions: words that every page has would find any page.
 */
export const searchOptions = {
  processTerm: (term: string): string | null => {
    const word = term.toLowerCase();
    const ofQuestions =
      " a an and are as at be been by can come do does each for from had has have here how i if in is it its may me my of on or our " +
      "should so than that the their them there they this to was were what when where which who why will with without would you your ";
    return ofQuestions.includes(` ${word} `) ? null : word;
  },
  // The list of questions has the words of every question. Long generated tables have nearly every word.
  boostDocument: (id: string): number => {
    if (id.includes("questions.html")) return 0;
    return /\/(?:reference\/|vendors|CONTRIBUTING)/.test(id) ? 0.5 : 1;
  },
};
