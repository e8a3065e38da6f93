package model

// Branch is a way that an operation can go. Each counts how often it was taken,
// so that a comparison with a server can show that it tried them all.
type Branch int

// The branches, by operation.
const (
	AcquireFree Branch = iota
	AcquireMineRaised
	AcquireMineKept
	AcquireMineBroken
	AcquireTry
	AcquirePoll
	AcquireListen
	AcquireNewTicket
	AcquireTicketBehindTail
	AcquireOldTicket
	AcquireQueuedAlready
	AcquireHeldByOther
	AcquireFoundFree
	AcquireAgain
	AcquireFirst
	AcquireGaveToOther
	AcquireTryRefused
	AcquireWaits
	RefusedByReaders
	RefusedByNobody
	FenceNow
	FenceAhead
	FenceGarbage
	FenceWrongType
	FenceBlock
	HandOverNobody
	HandOverMe
	HandOverGarbage
	HandOverDead
	HandOverPoller
	HandOverListener
	HandOverShort
	HandOverCapped
	HandOverMore
	HandOverReaders
	NextNobody
	NextUntold
	NextTold
	ToldInSlot
	ReleaseRests
	ReleaseBroken
	ReleaseAlone
	ReleaseLeavesQueue
	ReleaseNotQueued
	ReleaseOther
	ReleaseAbsent
	ReleaseAbsentHandsOver
	ReleaseAbsentNobody
	ReleaseHands
	ReleaseNobodyLeft
	ReleaseReader
	ReleaseLastReader
	RenewAbsent
	RenewOther
	RenewBroken
	RenewRaised
	RenewKept
	RenewAsked
	ResumeAbsent
	ResumeOther
	ResumeBroken
	ResumeAgain
	ResumeFenceWrongType
	ResumePasses
	InspectFree
	InspectHeld
	InspectGarbage
	InspectPoller
	InspectListener
	GuardAbsent
	GuardOther
	GuardReads
	GuardRepeated
	GuardRan
	GuardFailed
	BreakAbsent
	BreakOther
	BreakDeaf
	BreakAsked
	BreakAskedBefore
	BreakAskedWithoutTTL
	BreakHands
	BreakTakes
	BreakTakesForeign
	BreakTakenBefore
	BreakTold
	BreakUntold
	BrokenWrongType
	AdmitAll
	AdmitWriterWaits
	AdmitReader
	AdmitHasShare
	AdmitMeAgain
	AdmitMore
	ReadersEnded
	ReadersWrongType
	ReadAcquireFree
	ReadAcquireMine
	ReadAcquireJoins
	ReadAcquireFirst
	ReadAcquireBehindNobody
	ReadAcquireWaits
	ReadAcquireHeldByOther
	ReadAcquireAgain
	ReadAcquireWithOthers
	ReadAcquireGaveToOther
	ReadAcquireGaveToReaders
	ReadAcquireAnew
	DowngradeAbsent
	DowngradeBroken
	Downgrades
	DowngradeAgain
	DowngradeOther
	MemberAbsent
	MemberMarked
	MemberAsked
	MemberRaised
	MemberKept
	MarkAbsent
	Marks
	MarkAgain
	MarkTold
	MarkUntold
	MarksWrongType
	FateMarked
	FateBroken
	FateUnknown
	RollMarked
	RollUnmarked
	SemAcquireFree
	SemAcquireMineRaised
	SemAcquireMineKept
	SemAcquireBehindNobody
	SemAcquireFirst
	SemAcquireNoPermits
	SemAcquireAgain
	SemAcquireRefused
	SemAcquireWaits
	LimitOfAll
	LimitOfCaller
	LimitGarbage
	LimitWrongType
	PermitsEnded
	GrantHasOne
	GrantGiven
	SemReleaseAlone
	SemReleaseHands
	SemReleaseAbsentHands
	SemReleaseHandsNothing
	SemReleaseLeavesQueue
	SemReleaseNotQueued
	SemLimitRead
	SemLimitSet
	SemLimitUnset
	SemLimitHands
	SemGuardAbsent
	SemGuardHas
	AnnounceListRaised
	AnnounceListKept
	AnnounceGone
	AnnounceGoneAlready
	ProcsDropped
	ProcsWrongType
	RosterNobody
	RosterSome
	WhoisKnown
	WhoisUnknown
	ProcWrongType
	NoteAdds
	NoteTrims
	EventsNewest
	EventsAfter
	EventsOfNoCount
	EventsWrongType
	NoFence
	LockWrongType
	QueueWrongType
	MultiFree
	MultiMineRaised
	MultiMineKept
	MultiMineBroken
	MultiHeld
	MultiQueued
	MultiAllOrNone
	MultiFenceWrongType

	branchCount
)

var branchNames = [branchCount]string{
	AcquireFree:              "acquire.free",
	AcquireMineRaised:        "acquire.mine.raised",
	AcquireMineKept:          "acquire.mine.kept",
	AcquireMineBroken:        "acquire.mine.broken",
	AcquireTry:               "acquire.try",
	AcquirePoll:              "acquire.poll",
	AcquireListen:            "acquire.listen",
	AcquireNewTicket:         "acquire.ticket.new",
	AcquireTicketBehindTail:  "acquire.ticket.behind-tail",
	AcquireOldTicket:         "acquire.ticket.old",
	AcquireQueuedAlready:     "acquire.queued-already",
	AcquireHeldByOther:       "acquire.held",
	AcquireFoundFree:         "acquire.found-free",
	AcquireAgain:             "acquire.again",
	AcquireFirst:             "acquire.first",
	AcquireGaveToOther:       "acquire.gave-to-other",
	AcquireTryRefused:        "acquire.try-refused",
	AcquireWaits:             "acquire.waits",
	RefusedByReaders:         "refused.by-readers",
	RefusedByNobody:          "refused.by-readers-that-ended",
	FenceNow:                 "fence.now",
	FenceAhead:               "fence.ahead",
	FenceGarbage:             "fence.garbage",
	FenceWrongType:           "fence.wrong-type",
	FenceBlock:               "fence.block",
	HandOverNobody:           "handover.nobody",
	HandOverMe:               "handover.me",
	HandOverGarbage:          "handover.garbage",
	HandOverDead:             "handover.dead",
	HandOverPoller:           "handover.poller",
	HandOverListener:         "handover.listener",
	HandOverShort:            "handover.short-ttl",
	HandOverCapped:           "handover.capped-ttl",
	HandOverMore:             "handover.more",
	HandOverReaders:          "handover.readers",
	NextNobody:               "next.nobody",
	NextUntold:               "next.untold",
	NextTold:                 "next.told",
	ToldInSlot:               "told.in.slot",
	ReleaseRests:             "release.rests",
	ReleaseBroken:            "release.broken-does-not-rest",
	ReleaseAlone:             "release.alone",
	ReleaseLeavesQueue:       "release.leaves-queue",
	ReleaseNotQueued:         "release.not-queued",
	ReleaseOther:             "release.other",
	ReleaseAbsent:            "release.absent",
	ReleaseAbsentHandsOver:   "release.absent-hands-over",
	ReleaseAbsentNobody:      "release.absent-nobody",
	ReleaseHands:             "release.hands-over",
	ReleaseNobodyLeft:        "release.nobody-left",
	ReleaseReader:            "release.reader",
	ReleaseLastReader:        "release.last-reader",
	RenewAbsent:              "renew.absent",
	RenewOther:               "renew.other",
	RenewBroken:              "renew.broken",
	RenewRaised:              "renew.raised",
	RenewKept:                "renew.kept",
	RenewAsked:               "renew.asked",
	ResumeAbsent:             "resume.absent",
	ResumeOther:              "resume.other",
	ResumeBroken:             "resume.broken",
	ResumeAgain:              "resume.again",
	ResumeFenceWrongType:     "resume.fence-wrong-type",
	ResumePasses:             "resume.passes",
	InspectFree:              "inspect.free",
	InspectHeld:              "inspect.held",
	InspectGarbage:           "inspect.garbage",
	InspectPoller:            "inspect.poller",
	InspectListener:          "inspect.listener",
	GuardAbsent:              "guard.absent",
	GuardOther:               "guard.other",
	GuardReads:               "guard.reads",
	GuardRepeated:            "guard.repeated",
	GuardRan:                 "guard.ran",
	GuardFailed:              "guard.failed",
	BreakAbsent:              "break.absent",
	BreakOther:               "break.other",
	BreakDeaf:                "break.deaf",
	BreakAsked:               "break.asked",
	BreakAskedBefore:         "break.asked-before",
	BreakAskedWithoutTTL:     "break.asked-without-ttl",
	BreakHands:               "break.hands-over",
	BreakTakes:               "break.takes",
	BreakTakesForeign:        "break.takes-foreign",
	BreakTakenBefore:         "break.taken-before",
	BreakTold:                "break.told",
	BreakUntold:              "break.untold",
	BrokenWrongType:          "broken.wrong-type",
	AdmitAll:                 "admit.all",
	AdmitWriterWaits:         "admit.writer-waits",
	AdmitReader:              "admit.reader",
	AdmitHasShare:            "admit.has-share",
	AdmitMeAgain:             "admit.me-again",
	AdmitMore:                "admit.more",
	ReadersEnded:             "readers.ended",
	ReadersWrongType:         "readers.wrong-type",
	ReadAcquireFree:          "read_acquire.free",
	ReadAcquireMine:          "read_acquire.mine",
	ReadAcquireJoins:         "read_acquire.joins",
	ReadAcquireFirst:         "read_acquire.first",
	ReadAcquireBehindNobody:  "read_acquire.behind-nobody",
	ReadAcquireWaits:         "read_acquire.waits",
	ReadAcquireHeldByOther:   "read_acquire.held",
	ReadAcquireAgain:         "read_acquire.again",
	ReadAcquireWithOthers:    "read_acquire.with-others",
	ReadAcquireGaveToOther:   "read_acquire.gave-to-other",
	ReadAcquireGaveToReaders: "read_acquire.gave-to-readers",
	ReadAcquireAnew:          "read_acquire.anew",
	DowngradeAbsent:          "downgrade.absent",
	DowngradeBroken:          "downgrade.broken",
	Downgrades:               "downgrade.downgrades",
	DowngradeAgain:           "downgrade.again",
	DowngradeOther:           "downgrade.other",
	MemberAbsent:             "member.absent",
	MemberMarked:             "member.marked",
	MemberAsked:              "member.asked",
	MemberRaised:             "member.raised",
	MemberKept:               "member.kept",
	MarkAbsent:               "mark.absent",
	Marks:                    "mark.marks",
	MarkAgain:                "mark.again",
	MarkTold:                 "mark.told",
	MarkUntold:               "mark.untold",
	MarksWrongType:           "marks.wrong-type",
	FateMarked:               "fate.marked",
	FateBroken:               "fate.broken",
	FateUnknown:              "fate.unknown",
	RollMarked:               "roll.marked",
	RollUnmarked:             "roll.unmarked",
	SemAcquireFree:           "sem_acquire.free",
	SemAcquireMineRaised:     "sem_acquire.mine.raised",
	SemAcquireMineKept:       "sem_acquire.mine.kept",
	SemAcquireBehindNobody:   "sem_acquire.behind-nobody",
	SemAcquireFirst:          "sem_acquire.first",
	SemAcquireNoPermits:      "sem_acquire.no-permits",
	SemAcquireAgain:          "sem_acquire.again",
	SemAcquireRefused:        "sem_acquire.try-refused",
	SemAcquireWaits:          "sem_acquire.waits",
	LimitOfAll:               "limit.of-all",
	LimitOfCaller:            "limit.of-caller",
	LimitGarbage:             "limit.garbage",
	LimitWrongType:           "limit.wrong-type",
	PermitsEnded:             "permits.ended",
	GrantHasOne:              "grant.has-one",
	GrantGiven:               "grant.given",
	SemReleaseAlone:          "sem_release.alone",
	SemReleaseHands:          "sem_release.hands-over",
	SemReleaseAbsentHands:    "sem_release.absent-hands-over",
	SemReleaseHandsNothing:   "sem_release.hands-nothing",
	SemReleaseLeavesQueue:    "sem_release.leaves-queue",
	SemReleaseNotQueued:      "sem_release.not-queued",
	SemLimitRead:             "sem_limit.read",
	SemLimitSet:              "sem_limit.set",
	SemLimitUnset:            "sem_limit.unset",
	SemLimitHands:            "sem_limit.hands-over",
	SemGuardAbsent:           "sem_guard.absent",
	SemGuardHas:              "sem_guard.has",
	AnnounceListRaised:       "announce.list-raised",
	AnnounceListKept:         "announce.list-kept",
	AnnounceGone:             "announce.gone",
	AnnounceGoneAlready:      "announce.gone-already",
	ProcsDropped:             "procs.dropped",
	ProcsWrongType:           "procs.wrong-type",
	RosterNobody:             "roster.nobody",
	RosterSome:               "roster.some",
	WhoisKnown:               "whois.known",
	WhoisUnknown:             "whois.unknown",
	ProcWrongType:            "proc.wrong-type",
	NoteAdds:                 "note.adds",
	NoteTrims:                "note.trims",
	EventsNewest:             "events.newest",
	EventsAfter:              "events.after",
	EventsOfNoCount:          "events.no-count",
	EventsWrongType:          "events.wrong-type",
	NoFence:                  "value.no-fence",
	LockWrongType:            "lock.wrong-type",
	QueueWrongType:           "queue.wrong-type",
	MultiFree:                "multi_acquire.free",
	MultiMineRaised:          "multi_acquire.mine.raised",
	MultiMineKept:            "multi_acquire.mine.kept",
	MultiMineBroken:          "multi_acquire.mine.broken",
	MultiHeld:                "multi_acquire.held",
	MultiQueued:              "multi_acquire.queued",
	MultiAllOrNone:           "multi_acquire.all-or-none",
	MultiFenceWrongType:      "multi_acquire.fence-wrong-type",
}

func (b Branch) String() string { return branchNames[b] }

// Hits returns how often each branch was taken. Every branch is in it, those
// never taken with 0.
func (s *Store) Hits() map[Branch]int64 {
	m := make(map[Branch]int64, branchCount)
	for b, n := range s.hits {
		m[Branch(b)] = n
	}
	return m
}

func (s *Store) hit(b Branch) { s.hits[b]++ }
