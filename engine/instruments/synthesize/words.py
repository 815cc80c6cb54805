"""English words that name no theme: function words and verbs that stand in any sentence."""

COMMON = frozenset(
    """
    about above across after again against agent agents allow along already also although always among another anything
    apart around away back became because become becomes been before began behind being below beside between beyond both
    bring cannot certain come comes could despite does doing done down during each either else enough even ever every
    everything example first from further gave give given gives goes going gone have having hence here however include
    includes including indicates instead into itself just keep keeps kept know known later least less like likely made
    main make makes making many matter maybe mere merely might more most much must nearly need needs neither never
    next none nothing often once only onto other others otherwise over part particular perhaps possible quite rather
    really remain remains require requires same seem seems several shall should show shows simply since some something
    sometimes soon specific still such suggests system take takes taken tend tends than that their them then there
    therefore these they thing things this those though through throughout thus together toward towards truly under
    unless until upon used uses using usually various very want ways well were what whatever when whenever where
    whereas wherever whether which while whom whose will with within without would your yours
    """.split()  # noqa: SIM905  (a word list is read as words)
)
